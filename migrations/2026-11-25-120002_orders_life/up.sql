-- The life of an order after CONFIRMED (docs/states.md). No CHECK on the state: adding one copies the whole table on MySQL.
-- CHAR: each state is as long as any other, so that a change of it is made in place.
ALTER TABLE orders
  ADD COLUMN state          CHAR(9)      NULL COMMENT 'UNPAID, PAID, EXPIRED, CANCELLED; NULL where the sale has no payment step',
  ADD COLUMN state_at       DATETIME(3)  NULL COMMENT 'When it got this state, UTC',
  ADD COLUMN pay_by         DATETIME(3)  NULL COMMENT 'Deadline that the buyer is told, UTC by the clock of the database',
  ADD COLUMN expire_at      DATETIME(3)  NULL COMMENT 'Deadline that is enforced, UTC: pay_by and the grace',
  ADD COLUMN paying_at      DATETIME(3)  NULL COMMENT 'When a payment was started, which moved the deadline once; UTC',
  ADD COLUMN limit_returned TINYINT(1)   NOT NULL DEFAULT 0 COMMENT 'Whether it no longer counts against its buyer''s limit',
  ADD COLUMN version        INT UNSIGNED NOT NULL DEFAULT 1 COMMENT 'Grows with each event of the order: a receiver drops older ones';
