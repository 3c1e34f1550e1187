-- Forgets what is kept of archived sales; their exports are the only trace then.
DROP TABLE archived_sales;
