#!lua flags=allow-oom
-- Marks requests in the ledger as settled, after the database committed their outcome.
--
-- KEYS[1] ledger
-- ARGV: for each request: request id, state letter (C or F), reason (- without one)
-- Returns how many records changed
--
-- Only a queued record changes, so a repeat or a late call does nothing. Best effort: the database is the truth, and P5
-- marks what was missed. Allowed when memory is full: it writes no more than it replaces, and settling frees memory.

local changed = 0
for i = 1, #ARGV, 3 do
  local record = redis.call('HGET', KEYS[1], ARGV[i])
  if record then
    local number, user = string.match(record, '^Q (%d+ %d+ %d+ %d+) %- (.*)$')
    if number then
      redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1] .. ' ' .. number .. ' ' .. ARGV[i + 2] .. ' ' .. user)
      changed = changed + 1
    end
  end
end
return changed
