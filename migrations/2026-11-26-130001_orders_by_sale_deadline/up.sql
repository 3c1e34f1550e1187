-- The sweep walks it sale by sale; the audit sums units by state from it without reading rows. A change of state moves an order in
-- this index only.
ALTER TABLE orders DROP KEY ix_orders_deadline, ADD KEY ix_orders_deadline (sale_id, state, expire_at, request_id, quantity);
