-- Which webhooks want which events, as the leader of the webhooks has them in its configuration: whoever changes an order reads it here.
CREATE TABLE webhook_subscriptions (
  webhook     VARBINARY(48) NOT NULL COMMENT 'Name of the webhook in the configuration, ASCII',
  events      VARCHAR(255)  NOT NULL COMMENT 'The events that it wants, with spaces between them; empty: it was removed',
  disabled_at DATETIME(3)   NULL     COMMENT 'Since when its receiver answers 410 and nothing is sent, UTC; NULL: open. A replay opens it',
  PRIMARY KEY (webhook)
) ENGINE = InnoDB DEFAULT CHARACTER SET = utf8mb4 COLLATE = utf8mb4_bin COMMENT = 'Webhooks and the events that they want';
