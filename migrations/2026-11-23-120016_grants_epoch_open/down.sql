-- Runs first: the grants of rebuilds are of a kind that is not known before.
DELETE FROM stock_grants WHERE kind = 'rebuild';
