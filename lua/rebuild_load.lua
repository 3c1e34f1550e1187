#!lua
-- P5 rebuild (E7), second step: loads a page of decided requests, so that buyers keep their limits and replays their answer.
--
-- KEYS[1] meta, KEYS[2] buyers, KEYS[3] ledger
-- ARGV[1] epoch being built, then for each request: request id, ledger record, user, units that count against the limit
-- Returns how many were new; -1 when the sale is not being rebuilt in this epoch
--
-- A record is counted once: only a request id the ledger does not have adds to its buyer, so a page may be loaded again.

local meta = redis.call('HMGET', KEYS[1], 'state', 'epoch')
if meta[1] ~= 'frozen' or meta[2] ~= ARGV[1] then return -1 end
local new = 0
for i = 2, #ARGV, 4 do
  if redis.call('HSETNX', KEYS[3], ARGV[i], ARGV[i + 1]) == 1 then
    new = new + 1
    local units = tonumber(ARGV[i + 3])
    if units > 0 then
      local owned, first = string.match(redis.call('HGET', KEYS[2], ARGV[i + 2]) or '', '^(%d+) (%d+)$')
      redis.call('HSET', KEYS[2], ARGV[i + 2], string.format('%.0f', (tonumber(owned) or 0) + units) .. ' ' .. (first or ARGV[i]))
    end
  end
end
return new
