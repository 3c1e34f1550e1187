-- Orders. `one_per_user_id` is NULL unless the sale is one per user; NULLs never collide, so the one unique key serves
-- every policy.
CREATE TABLE orders (
  request_id      BIGINT UNSIGNED NOT NULL COMMENT 'The purchase request that became this order',
  sale_id         VARBINARY(64)   NOT NULL COMMENT 'The sale',
  user_id         VARBINARY(64)   NOT NULL COMMENT 'The buyer; compared byte for byte',
  one_per_user_id VARBINARY(64)   NULL     COMMENT 'The buyer again in one-per-user sales, else NULL',
  quantity        INT UNSIGNED    NOT NULL COMMENT 'Units bought',
  amount_cents    BIGINT          NOT NULL COMMENT 'quantity times the price of one unit',
  source          VARCHAR(16)     NOT NULL COMMENT 'Which path landed it: relay, compensation, replay',
  accepted_at     DATETIME(3)     NOT NULL COMMENT 'When Redis accepted the request, UTC by the clock of Redis',
  created_at      DATETIME(3)     NOT NULL DEFAULT CURRENT_TIMESTAMP(3) COMMENT 'When the row was written, UTC',
  PRIMARY KEY (request_id),
  UNIQUE KEY uk_sale_user (sale_id, one_per_user_id),
  CONSTRAINT ck_orders_quantity CHECK (quantity >= 1)
) ENGINE = InnoDB DEFAULT CHARACTER SET = utf8mb4 COLLATE = utf8mb4_bin COMMENT = 'Orders';
