-- The one fate of a request: the first writer of the primary key decides, everybody else learns what was decided.
-- `uk_acceptance` is the last net under a Redis that was rewound and handed a number out twice.
CREATE TABLE request_outcome (
  request_id   BIGINT UNSIGNED   NOT NULL COMMENT 'The purchase request',
  kind         VARCHAR(8)        NOT NULL COMMENT 'ORDER or FAILED',
  reason       VARCHAR(24)       NULL     COMMENT 'Stable code why it FAILED; NULL for an ORDER',
  sale_id      VARBINARY(64)     NOT NULL COMMENT 'The sale',
  shard        SMALLINT UNSIGNED NOT NULL COMMENT 'Home shard of the buyer at acceptance',
  epoch        INT UNSIGNED      NOT NULL COMMENT 'Epoch of the sale at acceptance',
  number       BIGINT UNSIGNED   NOT NULL COMMENT 'Acceptance number: 1, 2, 3 without gaps per sale, shard and epoch',
  payload_hash BINARY(16)        NOT NULL COMMENT 'Fingerprint of what was accepted',
  created_at   DATETIME(3)       NOT NULL DEFAULT CURRENT_TIMESTAMP(3) COMMENT 'When the fate was decided, UTC',
  PRIMARY KEY (request_id),
  UNIQUE KEY uk_acceptance (sale_id, shard, epoch, number),
  CONSTRAINT ck_outcome_kind   CHECK (kind IN ('ORDER', 'FAILED')),
  CONSTRAINT ck_outcome_reason CHECK ((kind = 'ORDER') = (reason IS NULL))
) ENGINE = InnoDB DEFAULT CHARACTER SET = utf8mb4 COLLATE = utf8mb4_bin COMMENT = 'The one fate of each request';
