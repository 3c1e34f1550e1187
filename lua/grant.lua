#!lua
-- Gives units of one grant to one shard of a warmed sale, once: the second call with the same grant id changes nothing.
--
-- KEYS[1] meta, KEYS[2] stock, KEYS[3] grants (hash: grant id -> units)
-- ARGV[1] epoch, ARGV[2] grant id, ARGV[3] units
-- Returns 1 given, 0 was given before, -1 the sale's keys are missing, -2 another epoch, -3 frozen
--
-- Atomic and checked first: the record of the grant and the units come together or not at all. Never into frozen keys: their
-- rebuild counts all grants of the database in one sum and would overwrite, or count twice, what came in between.

if redis.call('EXISTS', KEYS[1], KEYS[2], KEYS[3]) < 3 then return -1 end
local meta = redis.call('HMGET', KEYS[1], 'epoch', 'state')
if meta[1] ~= ARGV[1] then return -2 end
if meta[2] == 'frozen' then return -3 end
if redis.call('HEXISTS', KEYS[3], ARGV[2]) == 1 then return 0 end
-- INCRBY first: it is the one that would refuse (a stock that is no number), and then nothing has happened.
redis.call('INCRBY', KEYS[2], ARGV[3])
redis.call('HSET', KEYS[3], ARGV[2], ARGV[3])
return 1
