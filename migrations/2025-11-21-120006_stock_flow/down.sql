-- Takes stock_flow away with everything in it; for development databases only.
DROP TABLE stock_flow;
