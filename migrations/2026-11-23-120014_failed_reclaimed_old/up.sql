-- Failures that were reclaimed one by one before.
UPDATE failed_request f JOIN stock_grants g ON g.sale_id = f.sale_id AND g.grant_id = CONCAT('reclaim-', f.request_id)
  SET f.reclaimed_by = g.grant_id;
