-- A number that was closed makes no order. Who persists remembers which those are, and sees here that it has to read them again.
ALTER TABLE sales
  ADD COLUMN closings INT UNSIGNED NOT NULL DEFAULT 0 COMMENT 'How often acceptance numbers were closed, since this is counted';
