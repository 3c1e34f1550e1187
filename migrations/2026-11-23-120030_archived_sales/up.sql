-- Sales whose rows were exported and removed: what is kept of them here, one row a sale, never changed. While the sale still has
-- its row in `sales` it is being removed.
CREATE TABLE archived_sales (
  sale_id        VARBINARY(64)   NOT NULL COMMENT 'The sale; its id is not given again',
  title          VARCHAR(200)    NOT NULL COMMENT 'What a buyer read',
  granted        BIGINT          NOT NULL COMMENT 'Units ever released for sale',
  stock          BIGINT          NOT NULL COMMENT 'Units that were not sold',
  ordered        BIGINT          NOT NULL COMMENT 'Units of all orders, cancelled ones too',
  orders_count   BIGINT UNSIGNED NOT NULL COMMENT 'Orders',
  outcomes_count BIGINT UNSIGNED NOT NULL COMMENT 'Requests that had their fate',
  manifest       CHAR(64)        NOT NULL COMMENT 'SHA-256 of the export''s manifest.json, in hexadecimal',
  archived_by    VARCHAR(64)     NOT NULL COMMENT 'Who removed it',
  archived_at    DATETIME(3)     NOT NULL DEFAULT CURRENT_TIMESTAMP(3) COMMENT 'When its removal began, UTC',
  PRIMARY KEY (sale_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET = utf8mb4 COLLATE = utf8mb4_bin COMMENT = 'Sales exported and removed';
