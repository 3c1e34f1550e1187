#!lua flags=allow-oom
-- Marks requests in the ledger as settled, after the database committed their outcome.
--
-- KEYS[1] ledger, KEYS[2] meta
-- ARGV[1] epoch, ARGV[2] the highest acceptance number of it among the requests; 0: not known
-- ARGV from 3 on: for each outcome: state letter (C or F), reason (- without one), number of requests, then their request ids
-- Returns how many records changed
--
-- Only a queued record changes, so a repeat or a late call does nothing. Best effort: the database is the truth, and P5
-- marks what was missed. The highest number goes to the field `settled` of meta, as "<epoch> <number>": who waits for an
-- outcome reads it instead of its own record. Only for the epoch that the sale is in, and never without its meta. Allowed when
-- memory is full: it writes no more than it replaces, and settling frees memory.
-- One read and one write for each outcome, of which there are few: a call for each record costs more than its work. A record is
-- cut where its reason stands, and not taken apart: each text that Lua makes costs more than looking for the place.

local QUEUED = string.byte('Q')
local byte, find, sub = string.byte, string.find, string.sub
local changed, at = 0, 3
while at < #ARGV do
  local state, reason, first, last = ARGV[at], ARGV[at + 1], at + 3, at + 2 + tonumber(ARGV[at + 2])
  if first <= last then
    local records = redis.call('HMGET', KEYS[1], unpack(ARGV, first, last))
    local writes, used = {}, 0
    for i = first, last do
      local record = records[i - first + 1]
      -- Nothing before the reason has a '-'.
      local reason_at = record and byte(record) == QUEUED and find(record, ' - ', 1, true)
      if reason_at then
        local settled
        if reason == '-' then
          settled = state .. sub(record, 2)
        else
          settled = state .. sub(record, 2, reason_at) .. reason .. sub(record, reason_at + 2)
        end
        writes[used + 1], writes[used + 2] = ARGV[i], settled
        used = used + 2
      end
    end
    if used > 0 then
      redis.call('HSET', KEYS[1], unpack(writes, 1, used))
      changed = changed + used / 2
    end
  end
  at = last + 1
end
local epoch, newest = ARGV[1], tonumber(ARGV[2])
if newest > 0 then
  local meta = redis.call('HMGET', KEYS[2], 'epoch', 'settled')
  if meta[1] == epoch then
    local before = meta[2] and string.match(meta[2], '^' .. epoch .. ' (%d+)$')
    if not before or tonumber(before) < newest then
      redis.call('HSET', KEYS[2], 'settled', epoch .. ' ' .. ARGV[2])
    end
  end
end
return changed
