-- Orders of a sale by state; the audit sums units from it without reading rows.
ALTER TABLE orders ADD KEY ix_orders_sale (sale_id, state, request_id, quantity);
