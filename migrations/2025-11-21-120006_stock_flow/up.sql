-- The journal behind sales.stock: one row per grant and one per landed group, written in the transaction that moves the stock.
CREATE TABLE stock_flow (
  flow_id      BIGINT UNSIGNED NOT NULL AUTO_INCREMENT COMMENT 'Order of writing; gaps are normal',
  sale_id      VARBINARY(64)   NOT NULL COMMENT 'The sale',
  delta        BIGINT          NOT NULL COMMENT 'Units added to sales.stock; negative for orders',
  kind         VARCHAR(12)     NOT NULL COMMENT 'grant, order, cancel, correction',
  orders_count INT UNSIGNED    NOT NULL DEFAULT 0 COMMENT 'Orders in the landed group; 0 for other kinds',
  ref          VARBINARY(64)   NOT NULL COMMENT 'The grant id, or the lowest request id of the landed group',
  created_at   DATETIME(3)     NOT NULL DEFAULT CURRENT_TIMESTAMP(3) COMMENT 'When it was written, UTC',
  PRIMARY KEY (flow_id),
  UNIQUE KEY uk_flow_ref (sale_id, kind, ref),
  CONSTRAINT ck_flow_kind CHECK (kind IN ('grant', 'order', 'cancel', 'correction'))
) ENGINE = InnoDB DEFAULT CHARACTER SET = utf8mb4 COLLATE = utf8mb4_bin COMMENT = 'Journal of stock movements';
