-- Forgets which sales have a waiting room; for development databases only.
ALTER TABLE sales DROP COLUMN waiting_room;
