#!lua
-- Warm-up of one sale on one shard: creates all its keys in state `loaded`, or nothing at all.
--
-- NX by the whole: if any of the sale's keys is there, nothing is written. So two warm-ups cannot load stock twice, and a
-- half-lost sale is never filled up by guessing (A6).
--
-- KEYS[1] meta, KEYS[2] stock, KEYS[3] buyers, KEYS[4] ledger, KEYS[5] grants, KEYS[6] outbox
-- ARGV[1] epoch, ARGV[2] limit (0: none), ARGV[3] outbox cap, ARGV[4] relay group (empty: the outbox is a list, which is
--         nowhere while it has no entry), ARGV[5] grant id, ARGV[6] units, ARGV[7] number of shards,
--         ARGV[8] start, ARGV[9] end (Unix ms), ARGV[10] door (open or token): what the script obeys, so that neither the clock nor the
--         memory of an api process decides it; ARGV[11] drop: what the script obeys of it (reserve.lua), empty for a plain sale
-- Returns 1 created, 0 was there in this epoch, -1 was there in another epoch, -2 some keys are there and some are not,
--         -3 was there for another number of shards
--
-- The empty field of buyers and ledger marks them as created: a hash without entries would not exist, and then a lost key
-- could not be distinguished from an empty one. Readers of the two skip the empty field.

local present = 0
for i = 1, 5 do present = present + redis.call('EXISTS', KEYS[i]) end
if present == 5 then
  if redis.call('HGET', KEYS[1], 'shards') ~= ARGV[7] then return -3 end
  if redis.call('HGET', KEYS[1], 'epoch') == ARGV[1] then return 0 end
  return -1
end
if present > 0 then return -2 end

-- The shard's outbox and its group come before the first entry, read from the very beginning (window 25).
local group_there = ARGV[4] == ''
if not group_there and redis.call('EXISTS', KEYS[6]) == 1 then
  for _, group in ipairs(redis.call('XINFO', 'GROUPS', KEYS[6])) do
    if group[2] == ARGV[4] then group_there = true end
  end
end
if not group_there then redis.call('XGROUP', 'CREATE', KEYS[6], ARGV[4], '0', 'MKSTREAM') end
redis.call('HSET', KEYS[5], ARGV[5], ARGV[6])
redis.call('HSET', KEYS[4], '', ARGV[1])
redis.call('HSET', KEYS[3], '', ARGV[1])
redis.call('SET', KEYS[2], ARGV[6])
redis.call('HSET', KEYS[1], 'state', 'loaded', 'epoch', ARGV[1], 'limit', ARGV[2], 'cap', ARGV[3], 'number', '0',
  'accepted', '0 0', 'settled', ARGV[1] .. ' 0', 'shards', ARGV[7],
  'starts', ARGV[8], 'ends', ARGV[9], 'door', ARGV[10])
if ARGV[11] ~= '' then redis.call('HSET', KEYS[1], 'drop', ARGV[11]) end
return 1
