-- Forgets which units were to come; for development databases only.
DROP TABLE sale_releases;
