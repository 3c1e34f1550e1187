-- Takes stock_grants away with everything in it; for development databases only.
DROP TABLE stock_grants;
