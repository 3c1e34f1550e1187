#!lua
-- Gives units of one grant to one shard of a warmed sale, once: the second call with the same grant id changes nothing.
--
-- KEYS[1] meta, KEYS[2] stock, KEYS[3] grants (hash: grant id -> units), KEYS[4] buyers
-- ARGV[1] epoch, ARGV[2] grant id, ARGV[3] units; then, for each purchase of this shard that no longer counts against its buyer's
--         limit: user id, request id, units
-- Returns 1 given, 0 was given before, -1 the sale's keys are missing, -2 another epoch, -3 frozen
--
-- Atomic and checked first: the record of the grant, the units and the limits come together or not at all. Never into frozen keys:
-- their rebuild counts all grants of the database in one sum and would overwrite, or count twice, what came in between.
--
-- Each cancelled order is a grant, so there may be a million of them. Above FEW the meta keeps their sum, so that no count has to
-- read them all (count.lua): `granted` is "<number of grants> <units> <second at which they were summed one by one>". It is true
-- while the number is: grants only come, and go with the meta. A version that does not keep it may give grants, too; then they are
-- summed again, but at most every AGAIN_S, because two versions that take turns would read them all at each grant.

local FEW, AGAIN_S = 128, 30

if redis.call('EXISTS', KEYS[1], KEYS[2], KEYS[3]) < 3 then return -1 end
local meta = redis.call('HMGET', KEYS[1], 'epoch', 'state', 'granted')
if meta[1] ~= ARGV[1] then return -2 end
if meta[2] == 'frozen' then return -3 end -- @slot grant_not_frozen
if redis.call('HEXISTS', KEYS[3], ARGV[2]) == 1 then return 0 end
-- Read before anything is written: a key of another type is refused here. A buyer may be among them more than once.
local owned, firsts = {}, {}
for i = 4, #ARGV, 3 do
  local user = ARGV[i]
  if not owned[user] then
    local units, first = string.match(redis.call('HGET', KEYS[4], user) or '', '^(%d+) (%d+)$')
    owned[user], firsts[user] = tonumber(units) or 0, first
  end
  owned[user] = owned[user] - tonumber(ARGV[i + 2])
end
-- What `granted` will be; none as long as the grants are few, or were summed a moment ago.
local granted
local number = redis.call('HLEN', KEYS[3])
if number >= FEW then
  local counted, units, at = string.match(meta[3] or '', '^(%d+) (%-?%d+) (%d+)$')
  local sum = tonumber(units)
  if tonumber(counted) ~= number then
    local now = redis.call('TIME')[1]
    sum = nil
    if math.abs(tonumber(now) - (tonumber(at) or 0)) >= AGAIN_S then
      sum, at = 0, now
      for _, value in ipairs(redis.call('HVALS', KEYS[3])) do
        local of_grant = tonumber(value)
        -- Somebody wrote what is no number: the count says so, a grant goes on.
        sum = sum and of_grant and sum + of_grant
      end
    end
  end
  if sum then granted = string.format('%.0f %.0f %s', number + 1, sum + tonumber(ARGV[3]), at) end
end
-- INCRBY first: it is the one that would refuse (a stock that is no number), and then nothing has happened.
redis.call('INCRBY', KEYS[2], ARGV[3])
redis.call('HSET', KEYS[3], ARGV[2], ARGV[3])
if granted then redis.call('HSET', KEYS[1], 'granted', granted) end
for user, units in pairs(owned) do
  if units <= 0 then
    redis.call('HDEL', KEYS[4], user)
  elseif firsts[user] then
    redis.call('HSET', KEYS[4], user, string.format('%.0f', units) .. ' ' .. firsts[user])
  end
end
return 1
