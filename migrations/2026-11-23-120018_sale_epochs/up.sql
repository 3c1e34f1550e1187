-- What Redis' own count was when an epoch ended or its keys were removed: the witness for numbers without a fate.
CREATE TABLE sale_epochs (
  sale_id  VARBINARY(64)     NOT NULL COMMENT 'The sale',
  epoch    INT UNSIGNED      NOT NULL COMMENT 'The epoch that ended',
  shard    SMALLINT UNSIGNED NOT NULL COMMENT 'The shard',
  number   BIGINT UNSIGNED   NOT NULL COMMENT 'Its last acceptance number, as Redis had it',
  accepted BIGINT            NULL     COMMENT 'Units it accepted, as Redis counted them; NULL when Redis did not know any more',
  ended_at DATETIME(3)       NOT NULL DEFAULT CURRENT_TIMESTAMP(3) COMMENT 'When it was written, UTC',
  PRIMARY KEY (sale_id, epoch, shard)
) ENGINE = InnoDB DEFAULT CHARACTER SET = utf8mb4 COLLATE = utf8mb4_bin COMMENT = 'Acceptance numbers of epochs that ended';
