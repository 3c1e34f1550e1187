-- Where the unsold units of a sale go at its end. Each time they go is a row of stock_withdrawals; nothing here changes.
CREATE TABLE sale_rollovers (
  sale_id  VARBINARY(64) NOT NULL COMMENT 'The sale that the units leave',
  moves_to VARBINARY(64) NOT NULL COMMENT 'The sale of the same drop that gets them',
  PRIMARY KEY (sale_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET = utf8mb4 COLLATE = utf8mb4_bin COMMENT = 'Where unsold units go at the end of a sale';
