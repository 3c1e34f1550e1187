DROP TABLE archived_sales;
