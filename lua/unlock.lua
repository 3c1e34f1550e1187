#!lua flags=allow-oom
-- Releases a lock only if the caller still holds it: its time may have run out and another may have it now.
--
-- KEYS[1] lock (string: owner)
-- ARGV[1] owner
-- Returns 1 released, 0 not the owner's any more
--
-- Compare and delete in one step; a plain DEL would release another's lock. Allowed when memory is full.

if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
