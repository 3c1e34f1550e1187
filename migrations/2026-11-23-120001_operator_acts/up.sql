-- What people did to the system: one row an act, never changed and never deleted by the program, which may only INSERT and
-- SELECT here. Names are copied, so that a row still says who it was when an account is gone.
CREATE TABLE operator_acts (
  act_id      BIGINT UNSIGNED NOT NULL AUTO_INCREMENT COMMENT 'Order of writing',
  at          DATETIME(3)     NOT NULL DEFAULT CURRENT_TIMESTAMP(3) COMMENT 'When it was written, UTC by the clock of the database',
  actor_kind  VARCHAR(16)     NOT NULL COMMENT 'person or service',
  actor_id    VARCHAR(64)     NOT NULL COMMENT 'Who: the account that was proved, such as the user of the shell',
  actor_name  VARCHAR(128)    NOT NULL COMMENT 'The name as it was then; of an admin token what its holder typed',
  roles       VARCHAR(255)    NOT NULL COMMENT 'What the actor might do at the time, separated by commas',
  auth_method VARCHAR(24)     NOT NULL COMMENT 'How the actor was known: shell, admin_token',
  ip          VARCHAR(45)     NULL     COMMENT 'Address of the trusted hop; NULL at a terminal',
  action      VARCHAR(32)     NOT NULL COMMENT 'category.operation, such as sale.close',
  target_type VARCHAR(16)     NOT NULL COMMENT 'sale, request or entry',
  target_id   VARCHAR(128)    NOT NULL COMMENT 'Which one',
  sale_id     VARBINARY(64)   NULL     COMMENT 'The sale, if it is about one',
  outcome     VARCHAR(8)      NOT NULL COMMENT 'ok, denied or failed',
  code        VARCHAR(64)     NULL     COMMENT 'Stable code of what came of it',
  reason      VARCHAR(1000)   NULL     COMMENT 'Why, in the words of the actor',
  before_json MEDIUMTEXT      NULL     COMMENT 'What was there before, as JSON; a dropped message whole',
  after_json  MEDIUMTEXT      NULL     COMMENT 'What is there now, and what was asked for, as JSON',
  request_id  VARCHAR(64)     NULL     COMMENT 'X-Request-Id of the call; NULL at a terminal',
  PRIMARY KEY (act_id),
  KEY ix_acts_sale (sale_id, act_id),
  KEY ix_acts_action (action, act_id),
  KEY ix_acts_actor (actor_id, act_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET = utf8mb4 COLLATE = utf8mb4_bin COMMENT = 'What people did';
