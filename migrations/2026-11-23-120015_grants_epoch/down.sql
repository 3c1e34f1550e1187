-- Grants have no epoch again; those of rebuilds are gone by then.
ALTER TABLE stock_grants
  DROP CONSTRAINT ck_grants_kind,
  DROP KEY ix_grants_epoch,
  DROP COLUMN epoch,
  ADD CONSTRAINT ck_grants_kind CHECK (kind IN ('grant', 'reclaim'));
