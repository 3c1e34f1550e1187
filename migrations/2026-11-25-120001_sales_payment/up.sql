-- Whether buyers have to pay, and for how long units wait for it; sales from before have no payment step.
ALTER TABLE sales
  ADD COLUMN pay_within_s  INT UNSIGNED NULL COMMENT 'Seconds that a buyer has to pay; NULL: there is no payment step',
  ADD COLUMN pay_grace_s   INT UNSIGNED NOT NULL DEFAULT 30 COMMENT 'Seconds between the told and the enforced deadline',
  ADD COLUMN limit_returns TINYINT(1) NOT NULL DEFAULT 0 COMMENT 'Whether an order that ends unpaid no longer counts against its buyer''s limit';
