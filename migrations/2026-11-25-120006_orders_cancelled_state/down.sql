-- cancelled_at says it, too.
UPDATE orders SET state = NULL, state_at = NULL WHERE state = 'CANCELLED' AND pay_by IS NULL;
