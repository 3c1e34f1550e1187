-- New sales, which every api process reads each second.
ALTER TABLE sales ADD KEY ix_sales_created (created_at);
