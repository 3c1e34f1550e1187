-- A grant is given to Redis in one epoch: the one in which it was made, or, for the grant of a rebuild, the one it opened.
ALTER TABLE stock_grants
  DROP CONSTRAINT ck_grants_kind,
  ADD COLUMN epoch INT UNSIGNED NOT NULL DEFAULT 1 COMMENT 'Epoch of the sale in which Redis gets it' AFTER quantity,
  ADD KEY ix_grants_epoch (sale_id, epoch, applied_at, quantity),
  ADD CONSTRAINT ck_grants_kind CHECK (kind IN ('grant', 'reclaim', 'rebuild'));
