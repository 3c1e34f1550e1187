-- Counts each account of a person by itself from now on; for development databases only.
ALTER TABLE sales DROP COLUMN limit_by;
