ALTER TABLE request_outcome MODIFY number BIGINT UNSIGNED NOT NULL COMMENT 'Acceptance number: 1, 2, 3 without gaps per sale, shard and epoch';
