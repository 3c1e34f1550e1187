-- The sweep of overdue orders walks it.
ALTER TABLE orders ADD KEY ix_orders_deadline (state, expire_at, request_id);
