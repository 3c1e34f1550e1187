#!lua
-- P5 rebuild (E7), second step: loads a page of decided requests, so that buyers keep their limits and replays their answer.
--
-- KEYS[1] meta, KEYS[2] buyers, KEYS[3] ledger
-- ARGV[1] epoch being built, ARGV[2] number of this page on this shard: 1, 2, 3 ..., then for each request: request id, ledger
--         record (empty: too old to be kept), user, units that count against the limit
-- Returns 1 loaded, 0 was loaded before, -1 the sale is not being rebuilt in this epoch, or a page was left out
--
-- A page counts once, by its number: many of its requests leave nothing but their buyer's sum, which shows no repeat.

local meta = redis.call('HMGET', KEYS[1], 'state', 'epoch', 'page')
if meta[1] ~= 'frozen' or meta[2] ~= ARGV[1] or not meta[3] then return -1 end
local page, last = tonumber(ARGV[2]), tonumber(meta[3])
if page <= last then return 0 end
if page ~= last + 1 then return -1 end
for i = 3, #ARGV, 4 do
  if ARGV[i + 1] ~= '' then redis.call('HSET', KEYS[3], ARGV[i], ARGV[i + 1]) end
  local units = tonumber(ARGV[i + 3])
  if units > 0 then
    local owned, first = string.match(redis.call('HGET', KEYS[2], ARGV[i + 2]) or '', '^(%d+) (%d+)$')
    redis.call('HSET', KEYS[2], ARGV[i + 2], string.format('%.0f', (tonumber(owned) or 0) + units) .. ' ' .. (first or ARGV[i]))
  end
end
redis.call('HSET', KEYS[1], 'page', ARGV[2])
return 1
