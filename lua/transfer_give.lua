#!lua
-- P2 and P5, second step of a transfer: puts the units of one transfer record into the target's bucket, once (B4).
--
-- KEYS[1] meta, KEYS[2] stock
-- ARGV[1] epoch, ARGV[2] source shard, ARGV[3] the transfer's number, ARGV[4] units
-- Returns 1 given, 0 was given before, -1 keys are missing, -2 another epoch, -3 frozen, -4 damaged, -5 a later transfer was
--         given before, or another one under this number
--
-- The mark is the highest number given from that source, and stays: however late a repeat comes, it changes nothing. A number
-- that is left out was given to a server whose data went back; the record in the source is proof enough for this one. Also
-- for a sale that is paused or closed by now: units belong into a bucket. A frozen sale is rebuilt with all its units.
--
-- The units of the last number are remembered, too. A source that went back takes the numbers again that it forgot: its record
-- must not be forgotten as given (-5), or its units were in no bucket while those of the lost transfer are in two. Taken again
-- with the same units, the loss is mended: the units leave the source as they had left it. A process of an older version gives
-- without remembering the units; then a repeat counts as given before.

local function whole(text)
  if not text or not (text == '0' or string.find(text, '^[1-9]%d*$')) then return nil end
  local number = tonumber(text)
  if number < 9007199254740992 then return number end
  return nil
end

local kinds = { redis.call('TYPE', KEYS[1]).ok, redis.call('TYPE', KEYS[2]).ok }
if kinds[1] == 'none' or kinds[2] == 'none' then return -1 end
if kinds[1] ~= 'hash' or kinds[2] ~= 'string' then return -4 end
local mark, got = 'from:' .. ARGV[2], 'got:' .. ARGV[2]
local meta = redis.call('HMGET', KEYS[1], 'state', 'epoch', mark, 'in', got)
local last, total, stock = whole(meta[3] or '0'), whole(meta[4] or '0'), whole(redis.call('GET', KEYS[2]))
local number, units = whole(ARGV[3]), whole(ARGV[4])
if not (last and total and stock and number and units) then return -4 end
if meta[2] ~= ARGV[1] then return -2 end -- @slot epoch_of_gift
if meta[1] == 'frozen' then return -3 end
local before = number <= last -- @slot given_once
if before then
  local of_number, of_units = string.match(meta[5] or '', '^(%d+) (%d+)$')
  if of_number == ARGV[3] and of_units ~= ARGV[4] then return -5 end -- @slot units_remembered
  return number < last and -5 or 0
end

redis.call('INCRBY', KEYS[2], ARGV[4])
redis.call('HSET', KEYS[1], mark, ARGV[3], got, ARGV[3] .. ' ' .. ARGV[4], 'in', string.format('%.0f', total + units))
return 1
