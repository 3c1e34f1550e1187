-- Sells every sale to everybody; for development databases only.
ALTER TABLE sales DROP COLUMN needs;
