#!lua
-- Takes one unit from each of several buyers' token buckets (A9), by the generic cell rate algorithm.
--
-- KEYS[1] rate of a buyer (string: when the bucket is full again, microseconds since 1970; gone: it is full); more such
--         keys of the same shard may follow
-- ARGV[1] microseconds a unit takes to grow back, ARGV[2] units the bucket holds
-- Returns an array, for each key: 0 taken, else microseconds until a unit is there
--
-- One clock, the server's, for all processes. Losing a key fills that bucket, nothing else. All work is O(keys). The keys go
-- with their time (PEXPIRE), so memory follows the crowd of the moment.

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local grow, held = tonumber(ARGV[1]), tonumber(ARGV[2])
local reply = {}
for i = 1, #KEYS do
  local full_at = math.max(now, tonumber(redis.call('GET', KEYS[i]) or '0') or 0)
  local wait = full_at + grow - (now + grow * held)
  if wait > 0 then
    reply[i] = wait
  else
    local px = math.max(1, math.ceil((full_at + grow - now) / 1000))
    redis.call('SET', KEYS[i], string.format('%.0f', full_at + grow), 'PX', px)
    reply[i] = 0
  end
end
return reply
