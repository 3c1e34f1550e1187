-- What was wrong in a run, one row a finding.
CREATE TABLE audit_findings (
  finding_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT COMMENT 'Order of writing',
  run_id     BIGINT UNSIGNED NOT NULL COMMENT 'The run that found it',
  sale_id    VARBINARY(64)   NULL     COMMENT 'The sale, if it is about one',
  request_id BIGINT UNSIGNED NULL     COMMENT 'The request, if it is about one',
  code       VARCHAR(24)     NOT NULL COMMENT 'Stable state code, such as P5-RC1',
  detail     VARCHAR(1000)   NOT NULL COMMENT 'What a person should know',
  created_at DATETIME(3)     NOT NULL DEFAULT CURRENT_TIMESTAMP(3) COMMENT 'When it was written, UTC',
  PRIMARY KEY (finding_id),
  KEY ix_findings_run (run_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET = utf8mb4 COLLATE = utf8mb4_bin COMMENT = 'Findings of the audit';
