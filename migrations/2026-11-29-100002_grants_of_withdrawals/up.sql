-- A withdrawal is a grant of less than nothing. Only the condition goes, so no row is read or written.
ALTER TABLE stock_grants DROP CONSTRAINT ck_grants_quantity;
