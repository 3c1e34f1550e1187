-- Outcomes without a number have to go first: a number given twice (NUMBER_REUSED) has none.
ALTER TABLE request_outcome MODIFY number BIGINT UNSIGNED NOT NULL COMMENT 'Acceptance number: 1, 2, 3 without gaps per sale, shard and epoch';
