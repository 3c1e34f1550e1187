-- Units of a final failure are offered again once; the grant that does it is written here.
ALTER TABLE failed_request
  ADD COLUMN reclaimed_by VARBINARY(64) NULL COMMENT 'The grant that offered its units again; NULL while none did',
  ADD KEY ix_failed_units (sale_id, status, reclaimed_by, reason, quantity);
