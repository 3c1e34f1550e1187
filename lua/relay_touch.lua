#!lua flags=allow-oom
-- P3: keeps entries that this relay still works on from being taken over, by resetting their idle time.
--
-- KEYS[1] outbox
-- ARGV[1] group, ARGV[2] consumer, ARGV[3...] entry ids
-- Returns the ids that are still this consumer's; the others were taken over and must be dropped from memory
--
-- Ownership is read and renewed in one step: a plain XCLAIM would steal an entry that was rightly taken over meanwhile.

local mine = {}
for i = 3, #ARGV do
  local pending = redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[i], ARGV[i], 1, ARGV[2])
  if #pending > 0 then
    redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, ARGV[i], 'JUSTID')
    mine[#mine + 1] = ARGV[i]
  end
end
return mine
