-- The life of an order after CONFIRMED (docs/states.md). No CHECK on the state: adding one copies the whole table on MySQL.
ALTER TABLE orders
  ADD COLUMN state          VARCHAR(9)   NULL COMMENT 'UNPAID, PAID, EXPIRED, CANCELLED; NULL where the sale has no payment step',
  ADD COLUMN state_at       DATETIME(3)  NULL COMMENT 'When it got this state, UTC',
  ADD COLUMN pay_by         DATETIME(3)  NULL COMMENT 'Deadline that the buyer is told, UTC by the clock of the database',
  ADD COLUMN expire_at      DATETIME(3)  NULL COMMENT 'Deadline that is enforced, UTC: pay_by and the grace',
  ADD COLUMN paying_at      DATETIME(3)  NULL COMMENT 'When a payment was started, which moved the deadline once; UTC',
  ADD COLUMN limit_returned TINYINT(1)   NOT NULL DEFAULT 0 COMMENT 'Whether it no longer counts against its buyer''s limit',
  ADD COLUMN version        INT UNSIGNED NOT NULL DEFAULT 1 COMMENT 'Grows with each event of the order: a receiver drops older ones';
