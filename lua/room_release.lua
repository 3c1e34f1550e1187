#!lua
-- Releases the next places of a sale's waiting room: as many as the rate allows for the time since the last call of any process.
--
-- KEYS[1] room (sorted set: user -> order), KEYS[2] door (hash: drawn, begun, released, part, at, signed), KEYS[3] meta of
-- the sale on the same shard
-- ARGV[1] start of the sale as the caller knows it (the one in the meta counts), ARGV[2] when the keys go (both ms since 1970), ARGV[3] places a second (0: none), ARGV[4] highest
--         place the caller has seen signed, ARGV[5] drawn places that are answered a millisecond, ARGV[6] longest time for that (ms)
-- Returns {places released so far, arrivals, places released by this call, ms until the first is released}
--
-- Elapsed time is this server's, kept in microseconds in `at`; what is less than a place is kept in `part`, in millionths. So
-- any number of callers release exactly what one would. At most a second counts at once: an outage ends in no flood. Never
-- more than there are arrivals: places that no buyer waited for are not saved up. `signed` is above the arrivals only after Redis lost
-- the room; places that were signed before are let go all the same. Nothing is released unless the sale is open, and those
-- whose place was drawn at the start are given time to hear it first. Who was released stays so.

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
-- A sale that was rescheduled keeps its room until a day after its new end. Without a difference nothing is written.
for i = 1, 2 do
  local left = redis.call('PTTL', KEYS[i])
  if left > 0 and math.abs(now / 1000 + left - tonumber(ARGV[2])) > 1000 then redis.call('PEXPIREAT', KEYS[i], ARGV[2]) end
end
local count = redis.call('ZCARD', KEYS[1])
local door = redis.call('HMGET', KEYS[2], 'begun', 'drawn', 'released', 'part', 'at', 'signed')
local meta = redis.call('HMGET', KEYS[3], 'state', 'starts')
local open = meta[1] == 'open'
local starts = tonumber(meta[2] or ARGV[1]) * 1000
local drawn, released = tonumber(door[2] or count), tonumber(door[3] or '0')
local opens = starts
if drawn > 0 then
  opens = starts + 1000 * math.min(tonumber(ARGV[6]), 1000 + math.ceil(drawn / tonumber(ARGV[5])))
end
if not door[1] and now < starts then return { 0, count, 0, math.ceil((opens - now) / 1000) } end

local arrivals = math.max(count, tonumber(door[6] or '0'), tonumber(ARGV[4]))
local elapsed = math.min(math.max(now - math.max(tonumber(door[5] or now), opens), 0), 1000000)
local part = tonumber(door[4] or '0') + (open and tonumber(ARGV[3]) or 0) * elapsed
local gained = math.floor(part / 1000000)
part = part - gained * 1000000
if released + gained >= arrivals then gained, part = math.max(arrivals - released, 0), 0 end

local function whole(number) return string.format('%.0f', number) end
redis.call('HSET', KEYS[2], 'released', whole(released + gained), 'part', whole(part), 'at', whole(now), 'signed',
  whole(arrivals))
if not door[1] then
  redis.call('HSET', KEYS[2], 'begun', whole(now / 1000), 'drawn', count)
  redis.call('PEXPIREAT', KEYS[2], ARGV[2])
end
return { released + gained, arrivals, gained, math.max(math.ceil((opens - now) / 1000), 0) }
