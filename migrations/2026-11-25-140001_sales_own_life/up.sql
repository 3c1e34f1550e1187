-- A sale's own life: it can be hidden from buyers, and what is changed of it before its start is told from what was read.
-- Price and limit change before the start, so their comments say so now.
ALTER TABLE sales
  MODIFY COLUMN price_cents    BIGINT       NOT NULL COMMENT 'Price of one unit in the smallest unit of the currency; stays from 30 s before the start',
  MODIFY COLUMN per_user_limit INT UNSIGNED NULL COMMENT 'NULL unlimited, 1 one per user, n cumulative; stays from 30 s before the start',
  ADD COLUMN hidden  TINYINT(1)   NOT NULL DEFAULT 0 COMMENT 'Whether buyers do not see it; operators do',
  ADD COLUMN version INT UNSIGNED NOT NULL DEFAULT 1 COMMENT 'Incremented by each edit, change of its times, hide and publish';
