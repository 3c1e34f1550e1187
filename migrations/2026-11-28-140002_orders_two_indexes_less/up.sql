-- A buyer's orders are found by uk_sale_user, those of a sale by their acceptance numbers (request_outcome.uk_acceptance).
ALTER TABLE orders DROP KEY ix_orders_sale, DROP KEY ix_orders_user;
