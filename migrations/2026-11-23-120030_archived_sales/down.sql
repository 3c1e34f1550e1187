-- Forgets which sales were archived; for development databases only.
DROP TABLE archived_sales;
