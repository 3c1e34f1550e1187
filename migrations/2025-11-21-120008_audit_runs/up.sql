-- What P5 looked at, and whether everything added up.
CREATE TABLE audit_runs (
  run_id         BIGINT UNSIGNED NOT NULL AUTO_INCREMENT COMMENT 'Order of the runs',
  sale_id        VARBINARY(64)   NULL     COMMENT 'The sale looked at; NULL for all of them',
  started_at     DATETIME(3)     NOT NULL COMMENT 'When the run began, UTC',
  ended_at       DATETIME(3)     NOT NULL COMMENT 'When it ended, UTC',
  consistent     TINYINT(1)      NOT NULL COMMENT 'Whether everything added up',
  examined_count BIGINT UNSIGNED NOT NULL COMMENT 'Ledger records looked at',
  sheet          TEXT            NOT NULL COMMENT 'The balance sheet as JSON',
  PRIMARY KEY (run_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET = utf8mb4 COLLATE = utf8mb4_bin COMMENT = 'Runs of the audit';
