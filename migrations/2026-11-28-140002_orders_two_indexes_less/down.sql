-- Only indexes.
ALTER TABLE orders ADD KEY ix_orders_sale (sale_id, request_id), ADD KEY ix_orders_user (user_id, request_id);
