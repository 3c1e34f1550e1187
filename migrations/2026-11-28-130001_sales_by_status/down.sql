-- Only an index.
ALTER TABLE sales DROP KEY ix_sales_status;
