#!lua flags=allow-oom
-- Sets when one sale sells on one shard, to whom, and how much one buyer may have: what the reserve script obeys, by this server's
-- clock.
--
-- KEYS[1] meta
-- ARGV[1] start, ARGV[2] end (Unix ms), ARGV[3] limit (0: none), ARGV[4] door (open: anybody, token: requests with a purchase token,
-- line: offers of its line), ARGV[5] drop (activate.lua), ARGV[6] this server's clock before the caller read the sale's row, Unix
-- microseconds; empty: now
-- Returns 1 set, 0 it was so, 2 what is set was read later than the caller's, -1 the keys are missing
--
-- Read and write are one step, so keys that are lost are not begun again with these fields alone. Keys of an older version get their
-- window and door here. Allowed when memory is full, as a change of state is. The limit changes only before the start, when there is no
-- buyer who was counted by the old one.
--
-- A process may sleep between its reading of the row and this call, and the row may have changed meanwhile. So meta says when the row was
-- read that its terms are of, and an older reading changes nothing. A time that is to come says nothing: the clock was put back.

local meta = redis.call('HMGET', KEYS[1], 'state', 'starts', 'ends', 'limit', 'door', 'drop', 'terms_at')
if not meta[1] then return -1 end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local read_at, of_meta = tonumber(ARGV[6]) or now, tonumber(meta[7]) or 0
if of_meta > read_at and of_meta <= now then return 2 end -- @slot terms_read_later
local drop = ARGV[5] ~= '' and ARGV[5] or false
local was_so = meta[2] == ARGV[1] and meta[3] == ARGV[2] and meta[4] == ARGV[3] and meta[5] == ARGV[4] and meta[6] == drop
if was_so and of_meta == read_at then return 0 end
redis.call('HSET', KEYS[1], 'starts', ARGV[1], 'ends', ARGV[2], 'limit', ARGV[3], 'door', ARGV[4],
  'terms_at', string.format('%d', read_at))
if drop then redis.call('HSET', KEYS[1], 'drop', drop) else redis.call('HDEL', KEYS[1], 'drop') end
return was_so and 0 or 1
