-- Sales that are not over, among all that ever were: drafts that wait for their start, and those that sell.
ALTER TABLE sales ADD KEY ix_sales_status (status, ends_at, starts_at);
