-- What of a sale was announced last, so that each change is announced once: a row from the first check at a warmed sale to its close.
CREATE TABLE sale_announcements (
  sale_id      VARBINARY(64) NOT NULL COMMENT 'The sale',
  version      INT UNSIGNED  NOT NULL COMMENT 'Of its last event; 0: it has none yet',
  state        VARCHAR(9)    NOT NULL COMMENT 'UPCOMING, OPEN, SOLD_OUT, PAUSED, ENDED',
  announced_at DATETIME(3)   NOT NULL DEFAULT CURRENT_TIMESTAMP(3) COMMENT 'When, UTC',
  PRIMARY KEY (sale_id),
  CONSTRAINT ck_announcements_state CHECK (state IN ('UPCOMING', 'OPEN', 'SOLD_OUT', 'PAUSED', 'ENDED'))
) ENGINE = InnoDB DEFAULT CHARACTER SET = utf8mb4 COLLATE = utf8mb4_bin COMMENT = 'What of sales was announced last'
