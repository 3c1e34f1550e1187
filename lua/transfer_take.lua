#!lua
-- P2, first step of a transfer: takes units out of this bucket and writes down for which shard they are (B4).
--
-- KEYS[1] meta, KEYS[2] stock, KEYS[3] transfers (hash: target shard -> "<number> <units> <epoch>")
-- ARGV[1] epoch, ARGV[2] target shard, ARGV[3] units wanted
-- Returns {code, number, units}: 1 taken now, 2 a record for this target is there already: give that one first,
--         0 the bucket is empty, -1 keys are missing, -2 another epoch, -3 not open, -4 damaged
--
-- At most one transfer from this shard to a target is under way, and they are numbered 1, 2, 3 … without gaps. So a repeat
-- after a lost answer finds its record instead of taking twice, and the target needs to remember one number only. About
-- half is taken, but at least what is wanted if it is there. All is checked before the first write.

local epoch, target, wanted = ARGV[1], ARGV[2], tonumber(ARGV[3])

-- Only the spelling Redis itself would write, as in reserve.lua.
local function whole(text)
  if not text or not (text == '0' or string.find(text, '^[1-9]%d*$')) then return nil end
  local number = tonumber(text)
  if number < 9007199254740992 then return number end
  return nil
end

local kinds = { redis.call('TYPE', KEYS[1]).ok, redis.call('TYPE', KEYS[2]).ok, redis.call('TYPE', KEYS[3]).ok }
if kinds[1] == 'none' or kinds[2] == 'none' then return { -1, 0, 0 } end
if kinds[1] ~= 'hash' or kinds[2] ~= 'string' or (kinds[3] ~= 'none' and kinds[3] ~= 'hash') then return { -4, 0, 0 } end
local meta = redis.call('HMGET', KEYS[1], 'state', 'epoch', 'to:' .. target, 'out')
local number, out, stock = whole(meta[3] or '0'), whole(meta[4] or '0'), whole(redis.call('GET', KEYS[2]))
if not (number and out and stock) then return { -4, 0, 0 } end
if meta[2] ~= epoch then return { -2, 0, 0 } end
if meta[1] ~= 'open' then return { -3, 0, 0 } end

local record = redis.call('HGET', KEYS[3], target)
if record then
  local of_number, of_units = string.match(record, '^(%d+) (%d+) %d+$')
  if not of_number then return { -4, 0, 0 } end
  return { 2, tonumber(of_number), tonumber(of_units) }
end
if stock == 0 then return { 0, 0, 0 } end

local units = math.min(stock, math.max(wanted, math.ceil(stock / 2)))
local number_text, units_text = string.format('%.0f', number + 1), string.format('%.0f', units)
redis.call('HSET', KEYS[3], target, number_text .. ' ' .. units_text .. ' ' .. epoch) -- @slot transfer_record
redis.call('HSET', KEYS[1], 'to:' .. target, number_text, 'out', string.format('%.0f', out + units))
redis.call('DECRBY', KEYS[2], units_text)
return { 1, number + 1, units }
