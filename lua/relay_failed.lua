#!lua flags=allow-oom
-- P3: counts one failed attempt for each entry that is still this consumer's.
--
-- KEYS[1] outbox, KEYS[2] attempts
-- ARGV[1] group, ARGV[2] consumer, ARGV[3...] entry ids
-- Returns the new counts in order; 0: not this consumer's any more, nothing counted
--
-- Guarded by the pending list, so a relay that was asleep leaves no count behind for an entry another one finished
-- (window 29). Allowed when memory is full: at most one field for each entry in a relay's hand.

local counts = {}
for i = 3, #ARGV do
  local pending = redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[i], ARGV[i], 1, ARGV[2])
  counts[#counts + 1] = #pending > 0 and redis.call('HINCRBY', KEYS[2], ARGV[i], 1) or 0
end
return counts
