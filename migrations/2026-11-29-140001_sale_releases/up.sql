-- Units that a sale gets at a time of its own. A release that was given is the grant `release-<no>` in stock_grants; nothing here changes.
CREATE TABLE sale_releases (
  sale_id     VARBINARY(64)     NOT NULL COMMENT 'The sale',
  release_no  SMALLINT UNSIGNED NOT NULL COMMENT 'From 1, in the order of the times',
  releases_at DATETIME(3)       NOT NULL COMMENT 'When the units come, UTC',
  quantity    INT UNSIGNED      NOT NULL COMMENT 'Units',
  PRIMARY KEY (sale_id, release_no),
  CONSTRAINT ck_releases_quantity CHECK (quantity >= 1)
) ENGINE = InnoDB DEFAULT CHARACTER SET = utf8mb4 COLLATE = utf8mb4_bin COMMENT = 'Units that come by a timetable';
