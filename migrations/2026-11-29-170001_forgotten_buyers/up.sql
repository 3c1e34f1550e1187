-- Buyers whose ids became pseudonyms. The id is there only while the work is under way, so that a crash leaves what another process ends.
CREATE TABLE forgotten_buyers (
  pseudonym  VARBINARY(64) NOT NULL COMMENT 'What stands in the place of the id',
  user_id    VARBINARY(64) NULL     COMMENT 'The buyer; NULL when the work has ended',
  state      VARCHAR(8)    NOT NULL COMMENT 'CHECKING, RENAMING, DONE, REFUSED',
  reason     VARCHAR(200)  NOT NULL COMMENT 'Why, in the words of the operator',
  asked_by   VARCHAR(64)   NOT NULL COMMENT 'Who wanted it',
  started_at DATETIME(3)   NOT NULL DEFAULT CURRENT_TIMESTAMP(3) COMMENT 'When it was wanted, UTC',
  worked_at  DATETIME(3)   NOT NULL DEFAULT CURRENT_TIMESTAMP(3) COMMENT 'When a process worked on it last, UTC',
  ended_at   DATETIME(3)   NULL     COMMENT 'When the work ended, UTC; NULL while it is under way',
  PRIMARY KEY (pseudonym),
  UNIQUE KEY uk_forgotten_user (user_id),
  CONSTRAINT ck_forgotten_state CHECK (state IN ('CHECKING', 'RENAMING', 'DONE', 'REFUSED')),
  CONSTRAINT ck_forgotten_ended CHECK ((user_id IS NULL) = (ended_at IS NOT NULL))
) ENGINE = InnoDB DEFAULT CHARACTER SET = utf8mb4 COLLATE = utf8mb4_bin COMMENT = 'Buyers who were forgotten';
