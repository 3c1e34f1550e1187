#!lua flags=allow-oom
-- Forgets the cached sale after a change, and keeps out copies that were read before it.
--
-- KEYS[1] cached sale (hash: sale, sold_out, changed_at)
-- ARGV[1] how long copies are kept out (ms)
-- Returns 1
--
-- `changed_at` is this server's clock in microseconds; two changes of one microsecond are as good as one. Allowed when memory is full: a
-- pause must reach buyers then, too.

local time = redis.call('TIME')
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'changed_at', time[1] .. '.' .. time[2])
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1
