-- Units of orders that ended unpaid come back in batches, one journal row a batch.
ALTER TABLE stock_flow
  DROP CONSTRAINT ck_flow_kind,
  ADD CONSTRAINT ck_flow_kind CHECK (kind IN ('grant', 'order', 'cancel', 'correction', 'expire'));
