-- Forgets who the persons are; for development databases only.
ALTER TABLE failed_request DROP COLUMN person;
