-- Forgets everybody who is in a line; for development databases only.
DROP TABLE line_entries;
