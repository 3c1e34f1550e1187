-- Orders of a sale, newest first.
ALTER TABLE orders DROP KEY ix_orders_sale, ADD KEY ix_orders_sale (sale_id, request_id);
