-- The key as 0.2.0 made it.
ALTER TABLE orders DROP KEY uk_sale_user, ADD UNIQUE KEY uk_sale_user (sale_id, one_per_user_id);
