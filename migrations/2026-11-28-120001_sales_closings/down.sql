-- Forgets how often numbers were closed; for development databases only.
ALTER TABLE sales DROP COLUMN closings;
