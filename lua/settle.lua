#!lua flags=allow-oom
-- Marks requests in the ledger as settled, after the database committed their outcome.
--
-- KEYS[1] ledger
-- ARGV: for each outcome: state letter (C or F), reason (- without one), number of requests, then their request ids
-- Returns how many records changed
--
-- Only a queued record changes, so a repeat or a late call does nothing. Best effort: the database is the truth, and P5
-- marks what was missed. Allowed when memory is full: it writes no more than it replaces, and settling frees memory.
-- One read and one write for all: a call for each record costs more than its work.

local request_ids, states, reasons = {}, {}, {}
local at = 1
while at < #ARGV do
  local last = at + 2 + tonumber(ARGV[at + 2])
  for i = at + 3, last do
    request_ids[#request_ids + 1], states[#states + 1], reasons[#reasons + 1] = ARGV[i], ARGV[at], ARGV[at + 1]
  end
  at = last + 1
end
if #request_ids == 0 then return 0 end

local records, writes = redis.call('HMGET', KEYS[1], unpack(request_ids)), {}
for i, request_id in ipairs(request_ids) do
  local number, user
  if records[i] then number, user = string.match(records[i], '^Q (%d+ %d+ %d+ %d+) %- (.*)$') end
  if number then
    writes[#writes + 1] = request_id
    writes[#writes + 1] = states[i] .. ' ' .. number .. ' ' .. reasons[i] .. ' ' .. user
  end
end
if #writes > 0 then redis.call('HSET', KEYS[1], unpack(writes)) end
return #writes / 2
