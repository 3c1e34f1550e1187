-- Fails while there are grants of withdrawals: builds of before do not know them.
ALTER TABLE stock_grants ADD CONSTRAINT ck_grants_quantity CHECK (quantity >= 0);
