#!lua flags=allow-oom
-- P5: forgets settled requests in the ledger, after their outcome was read from the database and their time is over (E9).
--
-- KEYS[1] meta, KEYS[2] ledger
-- ARGV[1] newest acceptance time that may go (ms), ARGV[2...] request ids
-- Returns how many records went
--
-- What goes is added to the meta's trimmed counters in the same step, so that the audit's sums still hold. A record that is
-- queued, too young, or of another epoch's counting is judged here again: the caller's view of it may be old.

local epoch, cutoff = redis.call('HGET', KEYS[1], 'epoch'), tonumber(ARGV[1])
local went, count, ordered, failed = {}, 0, 0, 0
for i = 2, #ARGV do
  local record = redis.call('HGET', KEYS[2], ARGV[i])
  if record then
    local state, quantity, of_epoch, at = string.match(record, '^(%a) %d+ (%d+) (%d+) (%d+) ')
    if (state == 'C' or state == 'F') and tonumber(at) <= cutoff then
      went[#went + 1] = ARGV[i]
      if of_epoch == epoch then
        count = count + 1
        if state == 'C' then ordered = ordered + tonumber(quantity) else failed = failed + tonumber(quantity) end
      end
    end
  end
end
if #went == 0 then return 0 end
redis.call('HDEL', KEYS[2], unpack(went))
if count > 0 then
  redis.call('HINCRBY', KEYS[1], 'trimmed_count', count)
  redis.call('HINCRBY', KEYS[1], 'trimmed_ordered', ordered)
  redis.call('HINCRBY', KEYS[1], 'trimmed_failed', failed)
end
return #went
