-- The person behind the account of an order, in a sale that limits by person: what Redis counts is made again from it.
ALTER TABLE orders
  ADD COLUMN person VARBINARY(64) NULL COMMENT 'Whose limit it counts against, byte for byte; NULL: that of user_id';
