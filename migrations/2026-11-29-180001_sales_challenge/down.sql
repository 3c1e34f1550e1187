-- Issues purchase tokens of every sale without a challenge; for development databases only.
ALTER TABLE sales DROP COLUMN challenge;
