#!lua flags=allow-oom
-- P3: the broker confirmed these entries: acknowledge and delete them and forget their attempts, in one step.
--
-- KEYS[1] outbox, KEYS[2] attempts, KEYS[3] outbox-more (orders beyond the first of each entry)
-- ARGV[1] group, ARGV[2] how many of the entries have more than one order, then for each of those: entry id, orders; then
--         the ids of the other entries
-- Returns how many entries were deleted
--
-- One step, because XACK alone would leave an entry that is never read again and that looks unsent (window 44). Safe for an
-- entry another relay finished: every command is a no-op then. Allowed when memory is full: it frees memory.

local group, larger = ARGV[1], tonumber(ARGV[2])
local ids, deleted, more = {}, 0, 0
for i = 3, 2 + 2 * larger, 2 do
  ids[#ids + 1] = ARGV[i]
  -- One by one: only what is deleted here is counted off here.
  if redis.call('XDEL', KEYS[1], ARGV[i]) == 1 then
    deleted, more = deleted + 1, more + tonumber(ARGV[i + 1]) - 1
  end
end
local single = {}
for i = 3 + 2 * larger, #ARGV do
  ids[#ids + 1], single[#single + 1] = ARGV[i], ARGV[i]
end
if #single > 0 then deleted = deleted + redis.call('XDEL', KEYS[1], unpack(single)) end
redis.call('XACK', KEYS[1], group, unpack(ids))
redis.call('HDEL', KEYS[2], unpack(ids))
-- An empty outbox has no orders, whatever was deleted by hand before.
if redis.call('XLEN', KEYS[1]) == 0 then
  redis.call('DEL', KEYS[3])
elseif more > 0 then
  redis.call('DECRBY', KEYS[3], more)
end
return deleted
