-- Forgets which sales are hidden; for development databases only.
ALTER TABLE sales DROP COLUMN hidden, DROP COLUMN version;
