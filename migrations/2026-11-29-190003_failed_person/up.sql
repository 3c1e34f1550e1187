-- The person behind the account of a failed request, in a sale that limits by person.
ALTER TABLE failed_request
  ADD COLUMN person VARBINARY(64) NULL COMMENT 'Whose limit it would count against, byte for byte; NULL: that of user_id';
