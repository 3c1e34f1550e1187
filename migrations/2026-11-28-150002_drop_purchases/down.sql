-- Forgets what buyers own in drops; for development databases only.
DROP TABLE drop_purchases;
