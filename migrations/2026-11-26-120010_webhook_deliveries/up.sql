-- Events of orders that webhooks are owed: one row for each event and webhook, written in the transaction of what it tells.
CREATE TABLE webhook_deliveries (
  delivery_id BIGINT UNSIGNED   NOT NULL AUTO_INCREMENT COMMENT 'Order of writing',
  webhook     VARBINARY(48)     NOT NULL COMMENT 'Name of the webhook in the configuration, ASCII',
  request_id  BIGINT UNSIGNED   NOT NULL COMMENT 'The order',
  event_key   VARCHAR(24)       NOT NULL COMMENT 'The event: order.confirmed, order.failed, order.paid, order.expired, order.cancelled, order.refund_needed',
  body        BLOB              NOT NULL COMMENT 'The event as it is published',
  state       VARCHAR(9)        NOT NULL DEFAULT 'WAITING' COMMENT 'WAITING, DELIVERED, DEAD',
  attempts    SMALLINT UNSIGNED NOT NULL DEFAULT 0 COMMENT 'Tries so far; from 0 again after a replay',
  next_at     DATETIME(3)       NOT NULL DEFAULT CURRENT_TIMESTAMP(3) COMMENT 'WAITING: the next try, DELIVERED: may be deleted from then on, DEAD: since when; UTC',
  problem     VARCHAR(255)      NULL     COMMENT 'What the last try met; NULL when it was good, or none was made',
  created_at  DATETIME(3)       NOT NULL DEFAULT CURRENT_TIMESTAMP(3) COMMENT 'When the event happened, UTC',
  PRIMARY KEY (delivery_id),
  KEY ix_webhook_due (state, webhook, next_at, created_at),
  CONSTRAINT ck_webhook_state CHECK (state IN ('WAITING', 'DELIVERED', 'DEAD'))
) ENGINE = InnoDB DEFAULT CHARACTER SET = utf8mb4 COLLATE = utf8mb4_bin COMMENT = 'Events of orders that webhooks get';
