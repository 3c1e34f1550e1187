-- The books bridge Redis and the database (docs/architecture.md, "The books"): what each unit and each acceptance number became.
-- A failure can be recorded without a number: Redis went back and gave the same number twice, and another request has it.
ALTER TABLE request_outcome
  MODIFY number BIGINT UNSIGNED NULL COMMENT 'Acceptance number: 1, 2, 3 without gaps per sale, shard and epoch; NULL when another request has it';
