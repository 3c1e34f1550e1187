-- The line of a sale: who wants units and is given them by rank, not by click. The seed is drawn with the row, and its SHA-256 is public from
-- then on; the seed is public once the list is sealed.
CREATE TABLE sale_lines (
  sale_id       VARBINARY(64)   NOT NULL COMMENT 'The sale',
  kind          VARCHAR(16)     NOT NULL COMMENT 'How ranks come about: raffle',
  state         VARCHAR(16)     NOT NULL COMMENT 'OPEN, CLOSED (no entry is added), SEALED (count and digest are public), DRAWN',
  opens_at      DATETIME(3)     NOT NULL COMMENT 'From when entries are taken, UTC',
  closes_at     DATETIME(3)     NOT NULL COMMENT 'Until when, UTC',
  needs_beacon  TINYINT(1)      NOT NULL COMMENT '1: drawn only with a text from outside',
  commitment    BINARY(32)      NOT NULL COMMENT 'SHA-256 of the seed',
  seed          BINARY(32)      NOT NULL COMMENT 'Random',
  beacon        VARCHAR(200)    NULL     COMMENT 'The text from outside that was mixed in',
  entries_count BIGINT UNSIGNED NOT NULL COMMENT 'Rows of line_entries; once sealed, those of the list',
  digest        BINARY(32)      NULL     COMMENT 'SHA-256 over the entry ids of the list, once sealed',
  closed_at     DATETIME(3)     NULL     COMMENT 'When no entry was added any more, UTC',
  sealed_at     DATETIME(3)     NULL     COMMENT 'When count and digest were written, UTC',
  drawn_at      DATETIME(3)     NULL     COMMENT 'When the ranks were settled, UTC',
  PRIMARY KEY (sale_id),
  KEY ix_lines_state (state, closes_at)
) ENGINE = InnoDB DEFAULT CHARACTER SET = utf8mb4 COLLATE = utf8mb4_bin COMMENT = 'Lines of sales, and their draws';
