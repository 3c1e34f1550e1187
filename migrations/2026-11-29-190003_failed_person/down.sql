ALTER TABLE failed_request DROP COLUMN person;
