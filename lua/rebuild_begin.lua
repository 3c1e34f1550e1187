#!lua
-- P5 rebuild (E7), first step: replaces whatever is left of a sale on one shard by empty keys of the next epoch, frozen.
--
-- KEYS[1] meta, KEYS[2] stock, KEYS[3] buyers, KEYS[4] ledger, KEYS[5] grants, KEYS[6] transfers, KEYS[7] outbox
-- ARGV[1] new epoch, ARGV[2] limit (0: none), ARGV[3] outbox cap, ARGV[4] relay group (empty: the outbox is a list),
--         ARGV[5] number of shards, ARGV[6] epoch of the keys that were judged (0: there were none), ARGV[7] 1 if a rebuild was
--         under way on them, else 0; ARGV[8] start, ARGV[9] end (Unix ms), ARGV[10] door,
--         ARGV[11] drop (activate.lua)
-- Returns 1 begun, -1 these are other keys than those that were judged, or they sell
--
-- Old keys go and new ones come in one step; a crash before or after leaves a sale that is closed. Never touches a sale
-- that sells: only frozen keys, or keys that are missing in part, are replaced, and only those that the caller has judged: what
-- another rebuild opened meanwhile may have accepted requests. Each attempt has an epoch of its own, so nothing that a dead one
-- left is ever gone on with.
--
-- `rebuilt` is when the keys were begun (Unix ms): of an older request without a record only the database knows.

local meta = redis.call('HMGET', KEYS[1], 'state', 'epoch', 'page')
if tonumber(meta[2] or 0) >= tonumber(ARGV[1]) then return -1 end
if (meta[2] or '0') ~= ARGV[6] or (meta[3] and '1' or '0') ~= ARGV[7] then return -1 end -- @slot judged_keys
local present = redis.call('EXISTS', KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5])
if present == 5 and meta[1] ~= 'frozen' then return -1 end

local time = redis.call('TIME')
local group_there = ARGV[4] == ''
if not group_there and redis.call('EXISTS', KEYS[7]) == 1 then
  for _, group in ipairs(redis.call('XINFO', 'GROUPS', KEYS[7])) do
    if group[2] == ARGV[4] then group_there = true end
  end
end
if not group_there then redis.call('XGROUP', 'CREATE', KEYS[7], ARGV[4], '0', 'MKSTREAM') end
redis.call('UNLINK', KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6])
redis.call('HSET', KEYS[5], 'rebuild-' .. ARGV[1], '0')
redis.call('HSET', KEYS[4], '', ARGV[1])
redis.call('HSET', KEYS[3], '', ARGV[1])
redis.call('SET', KEYS[2], '0')
redis.call('HSET', KEYS[1], 'state', 'frozen', 'epoch', ARGV[1], 'limit', ARGV[2], 'cap', ARGV[3], 'number', '0',
  'accepted', '0 0', 'shards', ARGV[5], 'page', '0',
  'starts', ARGV[8], 'ends', ARGV[9], 'door', ARGV[10],
  'rebuilt', string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)))
if ARGV[11] ~= '' then redis.call('HSET', KEYS[1], 'drop', ARGV[11]) end
return 1
