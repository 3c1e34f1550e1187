-- Grants that were given need it no more.
ALTER TABLE stock_grants DROP COLUMN buyers;
