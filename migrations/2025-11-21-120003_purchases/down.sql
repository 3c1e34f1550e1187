-- Takes purchases away with everything in it; for development databases only.
DROP TABLE purchases;
