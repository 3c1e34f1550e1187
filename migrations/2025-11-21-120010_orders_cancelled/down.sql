-- Forgets which orders were cancelled; for development databases only.
ALTER TABLE orders DROP COLUMN cancelled_at, DROP COLUMN cancelled_by, DROP COLUMN cancel_reason;
