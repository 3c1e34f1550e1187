-- Forgets where unsold units were to go; for development databases only.
DROP TABLE sale_rollovers;
