-- Only an index.
ALTER TABLE orders DROP KEY ix_orders_deadline, ADD KEY ix_orders_deadline (state, expire_at, request_id);
