-- Money that a provider told of: one row a payment, never deleted. What no order could take is for a person: REFUND_NEEDED.
CREATE TABLE payments (
  payment_id   VARBINARY(128)  NOT NULL COMMENT 'Identity given by the provider; a repeat changes nothing',
  request_id   BIGINT UNSIGNED NOT NULL COMMENT 'The order that it is for, as told',
  sale_id      VARBINARY(64)   NULL     COMMENT 'The sale of that order; NULL when there is no such order',
  amount_cents BIGINT          NOT NULL COMMENT 'Amount in the smallest unit of the currency, as told',
  currency     VARCHAR(3)      NOT NULL COMMENT 'ISO 4217 code, as told',
  state        VARCHAR(13)     NOT NULL COMMENT 'APPLIED, REFUND_NEEDED, REFUNDED',
  reason       VARCHAR(24)     NULL     COMMENT 'Why money has to go back; NULL while it is applied',
  created_at   DATETIME(3)     NOT NULL DEFAULT CURRENT_TIMESTAMP(3) COMMENT 'When it was told, UTC',
  state_at     DATETIME(3)     NOT NULL DEFAULT CURRENT_TIMESTAMP(3) COMMENT 'When it got this state, UTC',
  PRIMARY KEY (payment_id),
  KEY ix_payments_request (request_id),
  KEY ix_payments_sale (sale_id, state, request_id),
  KEY ix_payments_state (state, state_at),
  CONSTRAINT ck_payments_state  CHECK (state IN ('APPLIED', 'REFUND_NEEDED', 'REFUNDED')),
  CONSTRAINT ck_payments_reason CHECK ((state = 'APPLIED') = (reason IS NULL)),
  CONSTRAINT ck_payments_amount CHECK (amount_cents >= 0)
) ENGINE = InnoDB DEFAULT CHARACTER SET = utf8mb4 COLLATE = utf8mb4_bin COMMENT = 'Money that was told of';
