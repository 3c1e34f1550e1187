-- Only an index.
ALTER TABLE orders DROP KEY ix_orders_sale;
