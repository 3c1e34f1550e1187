-- Events that a fate owes to downstream systems and no message will tell: those of compensation, replay and give-up.
-- Written with the fate, deleted by a consumer after the broker confirmed the event.
CREATE TABLE outcome_event (
  request_id BIGINT UNSIGNED NOT NULL COMMENT 'The request whose fate is to be told',
  event_key  VARCHAR(24)     NOT NULL COMMENT 'Routing key: order.confirmed, order.failed',
  body       BLOB            NOT NULL COMMENT 'The event as it is published',
  created_at DATETIME(3)     NOT NULL DEFAULT CURRENT_TIMESTAMP(3) COMMENT 'When the fate was decided, UTC',
  PRIMARY KEY (request_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET = utf8mb4 COLLATE = utf8mb4_bin COMMENT = 'Events still to be told';
