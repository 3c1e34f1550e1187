-- Takes orders away with everything in it; for development databases only.
DROP TABLE orders;
