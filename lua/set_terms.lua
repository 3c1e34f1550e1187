#!lua flags=allow-oom
-- Sets when one sale sells on one shard, to whom, and how much one buyer may have: what the reserve script obeys, by this server's
-- clock.
--
-- KEYS[1] meta
-- ARGV[1] start, ARGV[2] end (Unix ms), ARGV[3] limit (0: none), ARGV[4] door (open: anybody, token: requests with a purchase token),
-- ARGV[5] drop (activate.lua)
-- Returns 1 set, 0 it was so, -1 the keys are missing
--
-- Read and write are one step, so keys that are lost are not begun again with these fields alone. Without a change nothing
-- is written. Keys of an older version get their window and door here. Allowed when memory is full, as a change of state is. The
-- limit changes only before the start, when there is no buyer who was counted by the old one.

local meta = redis.call('HMGET', KEYS[1], 'state', 'starts', 'ends', 'limit', 'door', 'drop')
if not meta[1] then return -1 end
local drop = ARGV[5] ~= '' and ARGV[5] or false
if meta[2] == ARGV[1] and meta[3] == ARGV[2] and meta[4] == ARGV[3] and meta[5] == ARGV[4] and meta[6] == drop then return 0 end
redis.call('HSET', KEYS[1], 'starts', ARGV[1], 'ends', ARGV[2], 'limit', ARGV[3], 'door', ARGV[4])
if drop then redis.call('HSET', KEYS[1], 'drop', drop) else redis.call('HDEL', KEYS[1], 'drop') end
return 1
