-- A grant that Redis has not been given yet belongs to the epoch of today.
UPDATE stock_grants g JOIN sales s ON s.sale_id = g.sale_id SET g.epoch = s.epoch WHERE g.applied_at IS NULL;
