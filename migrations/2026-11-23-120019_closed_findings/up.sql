-- Findings that a person closed, with a reason: rows are added, never changed but for the grant that offers their units again.
CREATE TABLE closed_findings (
  closure_id   BIGINT UNSIGNED   NOT NULL AUTO_INCREMENT COMMENT 'Order of writing',
  sale_id      VARBINARY(64)     NOT NULL COMMENT 'The sale',
  code         VARCHAR(24)       NOT NULL COMMENT 'P5-RC4, REFUSED or UNBALANCED',
  epoch        INT UNSIGNED      NULL     COMMENT 'Of the acceptance numbers, for P5-RC4',
  shard        SMALLINT UNSIGNED NULL     COMMENT 'Of the acceptance numbers, for P5-RC4',
  first_number BIGINT UNSIGNED   NULL     COMMENT 'First acceptance number closed, for P5-RC4',
  last_number  BIGINT UNSIGNED   NULL     COMMENT 'Last acceptance number closed, for P5-RC4',
  units        BIGINT            NOT NULL COMMENT 'Units written off; for REFUSED the refused units it speaks about',
  reason       VARCHAR(1000)     NOT NULL COMMENT 'Why, in words',
  closed_by    VARCHAR(64)       NOT NULL COMMENT 'Who closed it',
  closed_at    DATETIME(3)       NOT NULL DEFAULT CURRENT_TIMESTAMP(3) COMMENT 'When, UTC',
  reclaimed_by VARBINARY(64)     NULL     COMMENT 'The grant that offered its units again; NULL while none did',
  PRIMARY KEY (closure_id),
  UNIQUE KEY uk_closed_numbers (sale_id, epoch, shard, first_number, last_number),
  CONSTRAINT ck_closed_code CHECK (code IN ('P5-RC4', 'REFUSED', 'UNBALANCED'))
) ENGINE = InnoDB DEFAULT CHARACTER SET = utf8mb4 COLLATE = utf8mb4_bin COMMENT = 'Findings closed by a person';
