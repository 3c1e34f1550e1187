-- Units that leave a sale. The row is written before Redis takes any, so a withdrawal that a crash cut off is found and finished.
CREATE TABLE stock_withdrawals (
  sale_id    VARBINARY(64) NOT NULL COMMENT 'The sale that the units leave',
  name       VARBINARY(64) NOT NULL COMMENT 'Identity of the withdrawal within the sale; repeats change nothing',
  asked      BIGINT        NOT NULL COMMENT 'Most units that leave',
  moves_to   VARBINARY(64) NULL     COMMENT 'The sale of the same drop that gets them; NULL: none does',
  taken      BIGINT        NULL     COMMENT 'Units that left, in stock_flow and stock_grants as well; NULL while it is open',
  created_at DATETIME(3)   NOT NULL DEFAULT CURRENT_TIMESTAMP(3) COMMENT 'When it was asked for, UTC',
  ended_at   DATETIME(3)   NULL     COMMENT 'When the units left, UTC; NULL while it is open',
  PRIMARY KEY (sale_id, name),
  UNIQUE KEY uk_withdrawals_to (moves_to, name),
  CONSTRAINT ck_withdrawals_asked CHECK (asked >= 1),
  CONSTRAINT ck_withdrawals_taken CHECK (taken BETWEEN 0 AND asked),
  CONSTRAINT ck_withdrawals_ended CHECK ((taken IS NULL) = (ended_at IS NULL))
) ENGINE = InnoDB DEFAULT CHARACTER SET = utf8mb4 COLLATE = utf8mb4_bin COMMENT = 'Units taken off sale, or moved to another sale';
