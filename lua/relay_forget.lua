#!lua flags=allow-oom
-- P3: removes the names of relays that are gone for good and left nothing.
--
-- KEYS[1] outbox
-- ARGV[1] group, ARGV[2] the caller's own name, ARGV[3] shortest silence (ms), ARGV[4] names to remove at most
-- Returns the names removed
--
-- Deleting a consumer deletes its pending list, and the entries in it would have no owner (window 30): so only names with an
-- empty one go, judged in the same step. A relay that was only slow comes back under its name by reading.

local gone = {}
for _, info in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
  local fields = {}
  for i = 1, #info, 2 do fields[info[i]] = info[i + 1] end
  local silent = fields['idle'] >= tonumber(ARGV[3]) and fields['name'] ~= ARGV[2]
  silent = silent and fields['pending'] == 0 -- @slot empty_names
  if silent and #gone < tonumber(ARGV[4]) then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], fields['name'])
    gone[#gone + 1] = fields['name']
  end
end
return gone
