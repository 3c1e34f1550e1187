-- Who is in the line of a sale. Ranks are not here: they follow from seed, digest and ids, and one is written with the offer.
CREATE TABLE line_entries (
  sale_id    VARBINARY(64)   NOT NULL COMMENT 'The sale',
  entry_id   BIGINT UNSIGNED NOT NULL COMMENT 'Made by the entry, public',
  user_id    VARBINARY(64)   NOT NULL COMMENT 'The buyer',
  person     VARBINARY(64)   NULL     COMMENT 'The person behind it, where the sale limits by person',
  limit_key  VARBINARY(64)   NOT NULL COMMENT 'Who may be in the line once: the person, or the buyer',
  quantity   INT UNSIGNED    NOT NULL COMMENT 'Units wanted',
  entry_rank INT UNSIGNED    NULL     COMMENT 'Its rank, from 1; written with the offer',
  state      VARCHAR(16)     NOT NULL COMMENT 'WAITING, OFFERED, TAKEN, LAPSED or LEFT',
  listed     TINYINT(1)      NOT NULL COMMENT '1: in the list that is drawn; 0: left before the close',
  request_id BIGINT UNSIGNED NULL     COMMENT 'The request of its offer',
  entered_at DATETIME(3)     NOT NULL COMMENT 'When it was written, UTC',
  state_at   DATETIME(3)     NOT NULL COMMENT 'When its state changed last, UTC',
  PRIMARY KEY (sale_id, entry_id),
  UNIQUE KEY uq_line_once (sale_id, limit_key),
  KEY ix_line_user (sale_id, user_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET = utf8mb4 COLLATE = utf8mb4_bin COMMENT = 'Entries of lines';
