#!lua flags=allow-oom
-- P2 and P5, last step of a transfer: forgets the source's record, after the target has given the units (B4).
--
-- KEYS[1] transfers (hash: target shard -> "<number> <units> <epoch>")
-- ARGV[1] target shard, ARGV[2] the record that was given
-- Returns 1 forgotten, 0 it is not there any more
--
-- Only that very record: a late repeat must not take the next transfer's away. Allowed when memory is full, it shrinks.

if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end -- @slot that_record
return redis.call('HDEL', KEYS[1], ARGV[1])
