#!lua
-- Puts a pseudonym in the place of a buyer in what one shard has of a sale: the buyer's units, and one page of the ledger.
--
-- KEYS[1] meta, KEYS[2] buyers, KEYS[3] ledger
-- ARGV[1] buyer, ARGV[2] pseudonym (empty: nothing is written, only counted), ARGV[3] cursor of the page ("0" begins), ARGV[4] records
--         of a page, about
-- A record ends in the buyer, or in the buyer, a TAB and the person where the sale limits by person; units are then the person's. Either of
-- the two may be who is forgotten.
-- Returns {cursor of the next page ("0": this was the last), 1 if the buyer had units here else 0, records of the buyer in the page,
--         how many of them are queued}; {} when the sale is frozen, or its meta is lost
--
-- A queued record stays as it is: its message has the buyer's id, and a replay compares both. Everything is read before the first write.
-- A repeat finds nothing more to do. What a rebuild loads meanwhile comes from the database, so a frozen sale is left for later. Where the
-- pseudonym has units already, because a rebuild read the database halfway, the two are one buyer.

local user, pseudonym = ARGV[1], ARGV[2]
local state = redis.call('HGET', KEYS[1], 'state')
if not state then
  if redis.call('EXISTS', KEYS[2], KEYS[3]) > 0 then return {} end
  return { '0', 0, 0, 0 }
end
if state == 'frozen' then return {} end
local units = redis.call('HGET', KEYS[2], user)
local there = pseudonym ~= '' and units and redis.call('HGET', KEYS[2], pseudonym)
local page = redis.call('HSCAN', KEYS[3], ARGV[3], 'COUNT', ARGV[4])
local records, queued, writes = 0, 0, {}
for i = 1, #page[2], 2 do
  local head, of = string.match(page[2][i + 1], '^(%a %d+ %d+ %d+ %d+ %S+ )(.*)$')
  local account, person = string.match(of or '', '^([^\t]*)\t(.*)$')
  if of == user or account == user or person == user then
    records = records + 1
    if string.sub(head, 1, 1) == 'Q' then
      queued = queued + 1
    else
      local named = pseudonym
      if account then
        named = (account == user and pseudonym or account) .. '\t' .. (person == user and pseudonym or person)
      end
      writes[#writes + 1] = { page[2][i], head .. named }
    end
  end
end
if pseudonym ~= '' then
  if units then
    local owned, first = string.match(units, '^(%d+) (%d+)$')
    local more, earlier = string.match(there or '', '^(%d+) (%d+)$')
    if owned and more then
      units = string.format('%.0f', tonumber(owned) + tonumber(more)) .. ' ' .. (tonumber(earlier) < tonumber(first) and earlier or first)
    end
    redis.call('HSET', KEYS[2], pseudonym, units)
    redis.call('HDEL', KEYS[2], user)
  end
  for _, write in ipairs(writes) do redis.call('HSET', KEYS[3], write[1], write[2]) end
end
return { page[1], units and 1 or 0, records, queued }
