-- The journal is summed row by row again.
ALTER TABLE stock_flow DROP KEY ix_flow_sale;
