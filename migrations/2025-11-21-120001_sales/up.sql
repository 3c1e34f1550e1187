-- What is sold. `stock` is the hot row of the system: landing updates it last, so it is locked for the shortest time.
-- No foreign key points here: its shared lock on the hot row would deadlock the landers.
CREATE TABLE sales (
  sale_id        VARBINARY(64)   NOT NULL COMMENT 'Identity; compared byte for byte',
  product_id     VARCHAR(64)     NOT NULL COMMENT 'What is sold; opaque',
  title          VARCHAR(200)    NOT NULL COMMENT 'What a buyer reads',
  price_cents    BIGINT          NOT NULL COMMENT 'Price of one unit in the smallest unit of the currency; never changes',
  currency       CHAR(3)         NOT NULL COMMENT 'ISO 4217 code',
  granted        BIGINT          NOT NULL COMMENT 'Units ever released for sale',
  stock          BIGINT          NOT NULL COMMENT 'Unsold units; equals the sum of stock_flow.delta',
  per_user_limit INT UNSIGNED    NULL     COMMENT 'NULL unlimited, 1 one per user, n cumulative; never changes',
  token_required TINYINT(1)      NOT NULL DEFAULT 0 COMMENT 'Whether a purchase needs a purchase token',
  starts_at      DATETIME(3)     NOT NULL COMMENT 'First instant in which it sells, UTC',
  ends_at        DATETIME(3)     NOT NULL COMMENT 'First instant in which it does not sell any more, UTC',
  status         VARCHAR(8)      NOT NULL DEFAULT 'draft' COMMENT 'draft, warmed, paused, closed',
  epoch          INT UNSIGNED    NOT NULL DEFAULT 1 COMMENT 'Incremented by each rebuild of Redis',
  created_at     DATETIME(3)     NOT NULL DEFAULT CURRENT_TIMESTAMP(3) COMMENT 'When the row was written, UTC',
  PRIMARY KEY (sale_id),
  CONSTRAINT ck_sales_stock   CHECK (stock >= 0),
  CONSTRAINT ck_sales_granted CHECK (granted >= stock),
  CONSTRAINT ck_sales_price   CHECK (price_cents >= 0),
  CONSTRAINT ck_sales_limit   CHECK (per_user_limit >= 1),
  CONSTRAINT ck_sales_window  CHECK (ends_at > starts_at),
  CONSTRAINT ck_sales_status  CHECK (status IN ('draft', 'warmed', 'paused', 'closed'))
) ENGINE = InnoDB DEFAULT CHARACTER SET = utf8mb4 COLLATE = utf8mb4_bin COMMENT = 'What is sold';
