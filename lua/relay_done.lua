#!lua flags=allow-oom
-- P3: the broker confirmed these entries: acknowledge and delete them and forget their attempts, in one step.
--
-- KEYS[1] outbox, KEYS[2] attempts
-- ARGV[1] group, ARGV[2...] entry ids
-- Returns how many entries were deleted
--
-- One step, because XACK alone would leave an entry that is never read again and that looks unsent (window 44). Safe for an
-- entry another relay finished: every command is a no-op then. Allowed when memory is full: it frees memory.

local group = ARGV[1]
local entry_ids = {}
for i = 2, #ARGV do entry_ids[#entry_ids + 1] = ARGV[i] end
redis.call('XACK', KEYS[1], group, unpack(entry_ids))
local deleted = redis.call('XDEL', KEYS[1], unpack(entry_ids))
redis.call('HDEL', KEYS[2], unpack(entry_ids))
return deleted
