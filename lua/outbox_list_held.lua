#!lua flags=no-writes
-- List outbox (C8): who holds which entry, all of one moment, for the audit and the rebuild.
--
-- KEYS[1] hands, then a processing list for each name
-- ARGV the names the lists belong to, in their order
-- Returns name, head of an entry ("<id> <sale>"), name, head, ...; 0 when there is a hand that was not asked for: ask again
--
-- One step, because an entry that is taken over goes from one list to another and could be in neither for a reader of both.

local asked, reply = {}, {}
for i = 1, #ARGV do asked[ARGV[i]] = true end
for _, name in ipairs(redis.call('HKEYS', KEYS[1])) do
  if not asked[name] then return 0 end
end
for i = 1, #ARGV do
  for _, entry in ipairs(redis.call('LRANGE', KEYS[i + 1], 0, -1)) do
    reply[#reply + 1] = ARGV[i]
    reply[#reply + 1] = string.match(entry, '^[^ ]* ?[^ ]*')
  end
end
return reply
