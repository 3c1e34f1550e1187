-- Only an index.
ALTER TABLE orders DROP KEY ix_orders_sale, ADD KEY ix_orders_sale (sale_id, state, request_id, quantity);
