#!lua
-- Writes one field of the cached sale: the sale as the database has it, or its sold-out mark.
--
-- KEYS[1] cached sale (hash: sale, sold_out, changed_at)
-- ARGV[1] field: sale or sold_out, ARGV[2] value, ARGV[3] time to live (ms), ARGV[4] of a sale: the `changed_at` that its reader
--         had seen before it read the database (empty: none)
-- Returns 1 written, 0 the sale was changed meanwhile
--
-- Field and time to live come in one step: a writer that died between the two would leave a sale that is cached for ever. A copy that
-- was read before a change (forget_sale.lua) is not written after it.

if ARGV[1] == 'sale' and (redis.call('HGET', KEYS[1], 'changed_at') or '') ~= ARGV[4] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
if ARGV[1] == 'sale' or redis.call('PTTL', KEYS[1]) < 0 then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
return 1
