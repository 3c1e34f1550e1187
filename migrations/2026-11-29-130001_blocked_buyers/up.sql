-- Buyers who may not buy. A block that was lifted keeps its row, so that each api process finds the change by its time.
CREATE TABLE blocked_buyers (
  user_id    VARBINARY(64) NOT NULL COMMENT 'The buyer',
  reason     VARCHAR(200)  NOT NULL COMMENT 'Why, in the operator''s words; no buyer reads it',
  ends_at    DATETIME(3)   NULL     COMMENT 'When the block ends by itself, UTC; NULL: never',
  blocked_at DATETIME(3)   NOT NULL COMMENT 'When the buyer was blocked, UTC',
  lifted_at  DATETIME(3)   NULL     COMMENT 'When the block was lifted, UTC; NULL: it was not',
  changed_at DATETIME(3)   NOT NULL COMMENT 'When the row was changed last, UTC',
  PRIMARY KEY (user_id),
  KEY ix_blocked_changed (changed_at)
) ENGINE = InnoDB DEFAULT CHARACTER SET = utf8mb4 COLLATE = utf8mb4_bin COMMENT = 'Buyers who may not buy';
