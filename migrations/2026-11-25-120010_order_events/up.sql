-- Events of orders after CONFIRMED that downstream systems are owed: written with the change, deleted after the broker's confirm.
CREATE TABLE order_events (
  event_id   BIGINT UNSIGNED NOT NULL AUTO_INCREMENT COMMENT 'Order of writing',
  request_id BIGINT UNSIGNED NOT NULL COMMENT 'The order, or the first of several',
  event_key  VARCHAR(24)     NOT NULL COMMENT 'Routing key: order.paid, order.expired, order.cancelled, order.refund_needed',
  events_count SMALLINT UNSIGNED NOT NULL DEFAULT 1 COMMENT 'How many events, 1 to 100',
  body       MEDIUMBLOB      NOT NULL COMMENT 'The event as it is published; of several: what they share, and each order',
  created_at DATETIME(3)     NOT NULL DEFAULT CURRENT_TIMESTAMP(3) COMMENT 'When it happened, UTC',
  PRIMARY KEY (event_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET = utf8mb4 COLLATE = utf8mb4_bin COMMENT = 'Events of orders still to be told';
