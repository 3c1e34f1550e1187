-- Forgets every line and its draw; for development databases only.
DROP TABLE sale_lines;
