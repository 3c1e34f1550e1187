-- Forgets which sales are of a drop; for development databases only.
ALTER TABLE sales DROP COLUMN drop_id;
