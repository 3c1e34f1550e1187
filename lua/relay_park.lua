#!lua flags=allow-oom
-- P3: moves one entry whose attempts are spent (or that is unreadable) to the relay DLQ, atomically.
--
-- KEYS[1] outbox, KEYS[2] attempts, KEYS[3] relay DLQ (stream), KEYS[4] outbox-more (orders beyond the first of each entry)
-- ARGV[1] group, ARGV[2] consumer, ARGV[3] entry id, ARGV[4] reason, ARGV[5] attempts, then for each order of an entry with
--         several: request id, message; without them the entry is parked as it is
-- Returns 1 moved, 0 not pending for this consumer (another relay has it now: nothing done), -1 the entry is gone
--
-- Guarded by the pending list, so a relay that was asleep cannot park what another one finished (window 29). The DLQ gets
-- it before the outbox loses it; in one script both happen (window 43). In the DLQ each order is an entry of its own, which
-- is replayed or given up by itself. Allowed when memory is full: net it frees.

local pending = redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[3], ARGV[3], 1, ARGV[2])
if #pending == 0 then return 0 end
local found = redis.call('XRANGE', KEYS[1], ARGV[3], ARGV[3])
if #found == 0 then
  redis.call('XACK', KEYS[1], ARGV[1], ARGV[3])
  redis.call('HDEL', KEYS[2], ARGV[3])
  return -1
end
local time = redis.call('TIME')
local at_ms = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
local why = { 'entry', ARGV[3], 'reason', ARGV[4], 'attempts', ARGV[5], 'parked_at_ms', at_ms }
local fields, sale, orders = found[1][2], '', 1
for i = 1, #fields, 2 do
  if fields[i] == 's' then sale = fields[i + 1] end
  if fields[i] == 'n' then orders = tonumber(fields[i + 1]) or 1 end
end
local function park(copy)
  for i = 1, #why do copy[#copy + 1] = why[i] end
  redis.call('XADD', KEYS[3], '*', unpack(copy))
end
for i = 6, #ARGV, 2 do park({ 's', sale, 'r', ARGV[i], 'p', ARGV[i + 1] }) end
if #ARGV == 5 then park(fields) end
redis.call('XACK', KEYS[1], ARGV[1], ARGV[3])
redis.call('XDEL', KEYS[1], ARGV[3])
redis.call('HDEL', KEYS[2], ARGV[3])
if redis.call('XLEN', KEYS[1]) == 0 then
  redis.call('DEL', KEYS[4])
elseif orders > 1 then
  redis.call('DECRBY', KEYS[4], orders - 1)
end
return 1
