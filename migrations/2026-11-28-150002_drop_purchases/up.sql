-- What each buyer owns in a drop. The transaction of an order locks the row, so two orders of one buyer in two sales of a drop
-- come one after the other.
CREATE TABLE drop_purchases (
  drop_id  VARBINARY(64)   NOT NULL COMMENT 'The drop',
  user_id  VARBINARY(64)   NOT NULL COMMENT 'The buyer; compared byte for byte',
  quantity BIGINT UNSIGNED NOT NULL COMMENT 'Units owned over all its sales; never above drops.per_user_limit',
  PRIMARY KEY (drop_id, user_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET = utf8mb4 COLLATE = utf8mb4_bin COMMENT = 'Units owned per buyer, for the limits of drops';
