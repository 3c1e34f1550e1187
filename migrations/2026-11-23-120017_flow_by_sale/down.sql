ALTER TABLE stock_flow DROP KEY ix_flow_sale;
