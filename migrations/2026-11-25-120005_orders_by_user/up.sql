-- "My orders".
ALTER TABLE orders ADD KEY ix_orders_user (user_id, request_id);
