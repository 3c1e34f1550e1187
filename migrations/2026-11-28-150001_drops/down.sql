-- Forgets all drops; for development databases only.
DROP TABLE drops;
