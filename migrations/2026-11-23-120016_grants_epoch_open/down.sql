DELETE FROM stock_grants WHERE kind = 'rebuild';
