-- One key for what two did: a buyer's orders, and one order a buyer in one-per-user sales. The column that makes it unique is NULL in all
-- other sales, and NULLs never collide. It keeps its name: 0.2.0 knows an order that a buyer has already by it.
ALTER TABLE orders DROP KEY uk_sale_user, ADD UNIQUE KEY uk_sale_user (user_id, sale_id, one_per_user_id);
