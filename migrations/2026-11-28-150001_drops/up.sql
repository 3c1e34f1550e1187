-- Drops: sales that belong together, with one limit for each buyer over all of them. Which sales a drop has never changes, so the list
-- stands in its row, and who reads a sale reads one more row for the others.
CREATE TABLE drops (
  drop_id        VARBINARY(64)   NOT NULL COMMENT 'Identity; compared byte for byte',
  title          VARCHAR(200)    NOT NULL COMMENT 'What a buyer reads',
  per_user_limit INT UNSIGNED    NULL     COMMENT 'Most units of one buyer over all its sales; NULL: only the limits of the sales',
  sale_ids       VARBINARY(4160) NOT NULL COMMENT 'Its sales in their order, with blanks between; never changes',
  version        INT UNSIGNED    NOT NULL DEFAULT 1 COMMENT 'Incremented by each edit',
  created_at     DATETIME(3)     NOT NULL DEFAULT CURRENT_TIMESTAMP(3) COMMENT 'When the row was written, UTC',
  PRIMARY KEY (drop_id),
  CONSTRAINT ck_drops_limit CHECK (per_user_limit >= 1)
) ENGINE = InnoDB DEFAULT CHARACTER SET = utf8mb4 COLLATE = utf8mb4_bin COMMENT = 'Sales that belong together';
