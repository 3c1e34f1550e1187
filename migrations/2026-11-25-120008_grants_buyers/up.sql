-- Whose limit comes back with the units of a grant: Redis forgets these purchases in the step that takes the units.
ALTER TABLE stock_grants
  ADD COLUMN buyers MEDIUMTEXT NULL COMMENT 'JSON: [user id, request id, units] of each purchase that no longer counts; NULL: none';
