-- Units released for sale: written here first, then given to Redis by grant id, then marked applied.
-- A grant of kind reclaim sells units of final failures again: Redis gets them, sales.granted never lost them.
CREATE TABLE stock_grants (
  sale_id    VARBINARY(64) NOT NULL COMMENT 'The sale',
  grant_id   VARBINARY(64) NOT NULL COMMENT 'Identity of the grant within the sale; repeats change nothing',
  kind       VARCHAR(8)    NOT NULL DEFAULT 'grant' COMMENT 'grant, reclaim',
  quantity   BIGINT        NOT NULL COMMENT 'Units released',
  created_at DATETIME(3)   NOT NULL DEFAULT CURRENT_TIMESTAMP(3) COMMENT 'When it was granted, UTC',
  applied_at DATETIME(3)   NULL     COMMENT 'When Redis was known to have it, UTC; NULL until then',
  PRIMARY KEY (sale_id, grant_id),
  CONSTRAINT ck_grants_kind     CHECK (kind IN ('grant', 'reclaim')),
  CONSTRAINT ck_grants_quantity CHECK (quantity >= 0)
) ENGINE = InnoDB DEFAULT CHARACTER SET = utf8mb4 COLLATE = utf8mb4_bin COMMENT = 'Units released for sale';
