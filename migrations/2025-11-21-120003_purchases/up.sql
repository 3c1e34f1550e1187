-- Units a buyer owns of a sale with a cumulative limit; kept for those sales only.
CREATE TABLE purchases (
  sale_id  VARBINARY(64)   NOT NULL COMMENT 'The sale',
  user_id  VARBINARY(64)   NOT NULL COMMENT 'The buyer; compared byte for byte',
  quantity BIGINT UNSIGNED NOT NULL COMMENT 'Units owned; never above sales.per_user_limit',
  PRIMARY KEY (sale_id, user_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET = utf8mb4 COLLATE = utf8mb4_bin COMMENT = 'Units owned per buyer, for cumulative limits';
