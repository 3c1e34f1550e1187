-- The register of failures: open ones wait for P5 or a person, final ones have a FAILED outcome beside them.
CREATE TABLE failed_request (
  request_id  BIGINT UNSIGNED NOT NULL COMMENT 'The purchase request',
  sale_id     VARBINARY(64)   NOT NULL COMMENT 'The sale',
  user_id     VARBINARY(64)   NOT NULL COMMENT 'The buyer',
  quantity    INT UNSIGNED    NOT NULL COMMENT 'Units wanted',
  source      VARCHAR(16)     NOT NULL COMMENT 'Who reported it: consumer, relay_dlq, mq_dlq, audit',
  reason      VARCHAR(24)     NOT NULL COMMENT 'Stable code',
  detail      VARCHAR(1000)   NOT NULL DEFAULT '' COMMENT 'What a person should know',
  payload     BLOB            NOT NULL COMMENT 'The message, so that it can be looked at and landed again',
  status      VARCHAR(16)     NOT NULL COMMENT 'open, failed_final, resolved',
  created_at  DATETIME(3)     NOT NULL DEFAULT CURRENT_TIMESTAMP(3) COMMENT 'When it was first reported, UTC',
  resolved_at DATETIME(3)     NULL     COMMENT 'When it stopped being open, UTC',
  resolved_by VARCHAR(64)     NULL     COMMENT 'Who or what closed it',
  PRIMARY KEY (request_id),
  KEY ix_failed_status (status, created_at),
  KEY ix_failed_sale (sale_id, status),
  CONSTRAINT ck_failed_status CHECK (status IN ('open', 'failed_final', 'resolved'))
) ENGINE = InnoDB DEFAULT CHARACTER SET = utf8mb4 COLLATE = utf8mb4_bin COMMENT = 'Register of failures';
