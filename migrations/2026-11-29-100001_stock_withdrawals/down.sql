-- Forgets what was taken off sale; for development databases only.
DROP TABLE stock_withdrawals;
