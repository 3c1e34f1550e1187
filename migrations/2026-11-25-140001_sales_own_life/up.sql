-- A sale's own life: it can be hidden from buyers, and what is changed of it before its start is told from what was read.
ALTER TABLE sales
  ADD COLUMN hidden  TINYINT(1)   NOT NULL DEFAULT 0 COMMENT 'Whether buyers do not see it; operators do',
  ADD COLUMN version INT UNSIGNED NOT NULL DEFAULT 1 COMMENT 'Incremented by each edit, change of its times, hide and publish';
