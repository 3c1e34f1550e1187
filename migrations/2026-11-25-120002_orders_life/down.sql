-- Which orders are paid or expired goes with it: take an export first.
ALTER TABLE orders DROP COLUMN state, DROP COLUMN state_at, DROP COLUMN pay_by, DROP COLUMN expire_at, DROP COLUMN paying_at,
  DROP COLUMN limit_returned, DROP COLUMN version;
