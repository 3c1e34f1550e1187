-- Forgets who the persons are; for development databases only.
ALTER TABLE orders DROP COLUMN person;
