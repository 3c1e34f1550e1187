#!lua flags=allow-oom
-- P3: takes entries that were delivered once and are in no pending list (window 30), one page of the stream.
--
-- KEYS[1] outbox
-- ARGV[1] group, ARGV[2] consumer, ARGV[3] id to start at, ARGV[4] entries to look at, ARGV[5] entries to take at most
-- Returns the id to go on at ('-': from the start) and the entries taken
--
-- Such an entry is behind the group's last delivered id, so no '>' and no XAUTOCLAIM ever brings it again: its consumer was
-- deleted with it, or the group was set forward, or it was acknowledged and not deleted (window 44). Look and claim are one
-- step, else a read in between would have two owners. Allowed when memory is full: what follows frees it.

if redis.call('EXISTS', KEYS[1]) == 0 then return { '-', {} } end
local last
for _, info in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
  local fields = {}
  for i = 1, #info, 2 do fields[info[i]] = info[i + 1] end
  if fields['name'] == ARGV[1] then last = fields['last-delivered-id'] end
end
if not last then return { '-', {} } end
local size, room = tonumber(ARGV[4]), tonumber(ARGV[5])
local page = redis.call('XRANGE', KEYS[1], ARGV[3], last, 'COUNT', size)
if #page == 0 then return { '-', {} } end
local owned = {}
for _, pending in ipairs(redis.call('XPENDING', KEYS[1], ARGV[1], page[1][1], page[#page][1], size)) do
  owned[pending[1]] = true
end
local taken = {}
for _, entry in ipairs(page) do
  local id = entry[1]
  -- Pending entries that were deleted can push others off the list above, so each suspect is asked about by itself.
  if not owned[id] and #redis.call('XPENDING', KEYS[1], ARGV[1], id, id, 1) == 0 then
    if #taken == room then return { id, taken } end
    redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, id, 'FORCE', 'JUSTID')
    taken[#taken + 1] = entry
  end
end
if #page < size then return { '-', taken } end
return { '(' .. page[#page][1], taken }
