-- The journal is summed from where it was summed before.
ALTER TABLE stock_flow ADD KEY ix_flow_sale (sale_id);
