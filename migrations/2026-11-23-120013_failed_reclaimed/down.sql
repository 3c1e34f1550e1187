-- Which failures were offered again is forgotten.
ALTER TABLE failed_request DROP KEY ix_failed_units, DROP COLUMN reclaimed_by;
