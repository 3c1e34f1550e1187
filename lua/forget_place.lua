#!lua
-- Puts a pseudonym in the place of a buyer in the waiting room of a sale. The place stays.
--
-- KEYS[1] room (sorted set: user -> order)
-- ARGV[1] buyer, ARGV[2] pseudonym (empty: nothing is written)
-- Returns 1 when the buyer had a place, else 0
--
-- A place that went would move all those behind it.

local order = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not order then return 0 end
if ARGV[2] ~= '' then
  redis.call('ZADD', KEYS[1], order, ARGV[2])
  redis.call('ZREM', KEYS[1], ARGV[1])
end
return 1
