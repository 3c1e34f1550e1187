#!lua
-- Takes unsold units of one withdrawal from one shard of a warmed sale, once: the second call with the same name changes nothing.
--
-- KEYS[1] meta, KEYS[2] stock, KEYS[3] grants (hash: grant id -> units)
-- ARGV[1] epoch, ARGV[2] grant id of the withdrawal, ARGV[3] most units to take, ARGV[4] highest acceptance number that the database
--         had of this epoch and shard before the call
-- Returns the units that this shard gave to the withdrawal, now or before (0: it had none left), -1 the sale's keys are missing,
-- -2 another epoch, -3 frozen, -4 this shard has accepted less than the database knows of: it went back in time
--
-- Atomic and checked first: units and record go together or not at all, and the stock never falls below 0. The record is a grant of
-- less than nothing, so every count of grants is right without knowing of withdrawals. It is there for 0 units as well: a repeat must
-- not find units that came in between. Never from frozen keys: their rebuild sets the stock by the database's, which has these units.
--
-- Never from a shard that went back in time: what seems unsold there may be sold, and only the reserve script stands behind the boot
-- fence. So the fence's comparison is made here, in the same step.
--
-- Of many grants the meta keeps the sum (grant.lua). A sum that is true stays true here; another one is left to the next grant.

if redis.call('EXISTS', KEYS[1], KEYS[2], KEYS[3]) < 3 then return -1 end
local meta = redis.call('HMGET', KEYS[1], 'epoch', 'state', 'granted', 'number')
if meta[1] ~= ARGV[1] then return -2 end
if meta[2] == 'frozen' then return -3 end
if (tonumber(meta[4]) or 0) < tonumber(ARGV[4]) then return -4 end
local before = redis.call('HGET', KEYS[3], ARGV[2]) -- @slot withdraw_once
if before then return 0 - tonumber(before) end
local counted, sum, at = string.match(meta[3] or '', '^(%d+) (%-?%d+) (%d+)$')
local units = math.max(0, math.min(tonumber(ARGV[3]), tonumber(redis.call('GET', KEYS[2])) or 0))
-- DECRBY first: it is the one that would refuse (a stock that is no number), and then nothing has happened.
redis.call('DECRBY', KEYS[2], string.format('%.0f', units))
redis.call('HSET', KEYS[3], ARGV[2], string.format('%.0f', 0 - units))
local number = redis.call('HLEN', KEYS[3])
if counted and tonumber(counted) == number - 1 then
  redis.call('HSET', KEYS[1], 'granted', string.format('%.0f %.0f %s', number, tonumber(sum) - units, at))
end
return units
