-- Orders that were cancelled before orders had states.
UPDATE orders SET state = 'CANCELLED', state_at = cancelled_at WHERE cancelled_at IS NOT NULL AND state IS NULL;
