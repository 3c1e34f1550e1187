#!lua
-- P2 reserve: decides a group of purchase requests of one sale on one shard, atomically.
--
-- Each accepted request gets, in this one step: its units off the bucket, its buyer's record, its ledger record with the
-- next acceptance number, and its outbox entry. A request id that is in the ledger already is a replay and changes nothing.
--
-- KEYS[1] meta    hash: state, epoch, limit (0: none), cap, number, accepted ("<number> <units>")
-- KEYS[2] stock   string: units left in this bucket
-- KEYS[3] buyers  hash: user -> "<units> <first request id>"
-- KEYS[4] ledger  hash: request id -> "<state> <number> <quantity> <epoch> <at_ms> <reason> <user>"
-- KEYS[5] outbox  stream, or list (see OUTBOX below)
-- KEYS[6] hands   list outbox only; hash: relay -> "<last seen> <entries it holds>"
-- ARGV[1] epoch the caller knows, ARGV[2] sale id, ARGV[3] shard, ARGV[4] number of shards, then for each request:
--         request id, user id, quantity, head of its message (JSON up to and without the comma before "shard")
-- Returns a flat array, for each request: code, detail. Codes (domain/reserve.rs):
--         0 accepted, 1 replayed, 2 duplicate buyer (first request id), 3 limit (units owned), 4 short (units left),
--         5 conflict, 6 paused, 7 closed, 8 frozen, 9 keys missing, 10 stale epoch, 11 backlog, 12 damaged,
--         13 warmed for another number of shards
--         Error NOSCRIPT: nothing ran, pass the boot fence first
--
-- Why nothing can be half done: every key's type and every number is checked before the first write; memory is checked by
-- Redis before the script starts (the #!lua line without allow-oom); between the writes nothing can fail, and no pcall
-- hides an error. Replay comes first: a winner's retry must get "accepted" after sell-out, pause and end alike.
-- All work is O(group); the hashes and the outbox are only touched by key (the hands are as many as relays at work).

-- A line that ends in "@slot" may be replaced before the script is loaded (src/store/redis/scripts/reserve.rs).
-- The key prefix of the system, so that no two systems on one server share this script's SHA-1. -- @slot system

-- The kind of outbox (redis.outbox).
local OUTBOX = 'stream' -- @slot outbox

-- The replication id of a server that can be promoted. Redis changes it at every promotion. A server that was promoted since
-- the boot fence, and kept its scripts from an earlier time as primary, must not run this one (window 17).
local REPLICATION_ID = nil -- @slot replication_id
if REPLICATION_ID and not string.find(redis.call('INFO', 'replication'), 'master_replid:' .. REPLICATION_ID, 1, true) then
  return redis.error_reply('NOSCRIPT this server was promoted since the boot fence')
end

local meta_key, stock_key, buyers_key, ledger_key, outbox_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local epoch, sale, shard, shards = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local FIRST, WIDTH = 5, 4
local count = (#ARGV - FIRST + 1) / WIDTH

local function answer_all(code)
  local reply = {}
  for i = 1, count do
    reply[2 * i - 1] = code
    reply[2 * i] = 0
  end
  return reply
end

-- Only the spelling Redis itself would write: Lua also reads "1e3", "0x10" and "8.0", but DECRBY would refuse them after
-- the other writes.
local function whole(text)
  if text == '1' then return 1 end
  if not text or not (text == '0' or string.find(text, '^[1-9]%d*$')) then return nil end
  local number = tonumber(text)
  if number < 9007199254740992 then return number end
  return nil
end

-- Without entries a list and the hands do not exist. There is no group that could begin too late (window 25).
local WANTED, ALWAYS = { 'hash', 'string', 'hash', 'hash', OUTBOX, 'hash' }, OUTBOX == 'list' and 4 or 5
local missing, damaged = false, false
for i = 1, #KEYS do
  local kind = redis.call('TYPE', KEYS[i]).ok
  if kind == 'none' then missing = missing or i <= ALWAYS elseif kind ~= WANTED[i] then damaged = true end
end
if damaged then return answer_all(12) end
if missing then return answer_all(9) end

local meta = redis.call('HMGET', meta_key, 'state', 'epoch', 'limit', 'cap', 'number', 'shards', 'accepted')
local limit, cap, number = whole(meta[3]), whole(meta[4]), whole(meta[5])
local stock = whole(redis.call('GET', stock_key))
if not (limit and cap and number and stock) then return answer_all(12) end
-- Units accepted up to a number. Another version of this script may have accepted without counting: then counting stops.
local counted_to, counted_units = string.match(meta[7] or '', '^(%d+) (%d+)$')
local counted = counted_to == meta[5] and whole(counted_units) or nil

-- The answer to every request that is not a replay, if the sale is not open to it.
local refusal = nil
-- With another number of shards a buyer would have another home, and could buy there once more. Keys without it are older.
if (meta[6] or '1') ~= shards then
  refusal = 13
elseif meta[1] == 'open' then
  if meta[2] ~= epoch then refusal = 10 end
elseif meta[1] == 'paused' or meta[1] == 'loaded' then
  refusal = 6
elseif meta[1] == 'closed' then
  refusal = 7
elseif meta[1] == 'frozen' then
  refusal = 8
else
  refusal = 12
end
-- Of a list, the entries in the relays' processing lists are as unsent as those in it.
local room = cap
if OUTBOX == 'list' then
  room = room - redis.call('LLEN', outbox_key)
  for _, hand in ipairs(redis.call('HVALS', KEYS[6])) do
    room = room - (whole(string.match(hand, '^%d+ (%d+)$')) or 0)
  end
else
  room = room - redis.call('XLEN', outbox_key)
end

local request_ids, users = {}, {}
for i = 1, count do
  local at = FIRST + (i - 1) * WIDTH
  request_ids[i], users[i] = ARGV[at], ARGV[at + 1]
end
local known = redis.call('HMGET', ledger_key, unpack(request_ids))
local bought = redis.call('HMGET', buyers_key, unpack(users))

local time = redis.call('TIME')
local at_ms = string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000))

-- The same in every record and message of this group.
local tail = ' ' .. epoch .. ' ' .. at_ms .. ' - '
local middle, at_end = ',"shard":' .. shard .. ',"epoch":' .. epoch .. ',"no":', ',"at":' .. at_ms .. '}'

local reply, accepted_request_ids, payloads = {}, {}, {}
local ledger_writes, buyer_writes = {}, {}
-- The decisions of this group so far: a request id or a buyer may come twice in one group.
local new_records, new_owned, new_first = {}, {}, {}
local taken, accepted = 0, 0

for i = 1, count do
  local at = FIRST + (i - 1) * WIDTH
  local request_id, user, quantity = request_ids[i], users[i], whole(ARGV[at + 2])
  local code, detail = 0, 0
  local record = known[i] or new_records[request_id] -- @slot replay_check
  if not quantity or quantity < 1 then
    code = 12
  elseif record then
    local was_quantity, was_user = string.match(record, '^%a %d+ (%d+) %d+ %d+ %S+ (.*)$')
    if was_user == user and tonumber(was_quantity) == quantity then code = 1 else code = 5 end
  elseif refusal then
    code = refusal
  else
    local owned, first = new_owned[user], new_first[user]
    if not owned and bought[i] then
      local text_owned, text_first = string.match(bought[i], '^(%d+) (%d+)$')
      owned, first = whole(text_owned), text_first
    end
    if bought[i] and not owned then
      code = 12
    elseif limit == 1 and owned then
      code, detail = 2, first
    elseif limit > 0 and (owned or 0) + quantity > limit then
      code, detail = 3, owned or 0
    elseif stock - taken < quantity then
      code, detail = 4, stock - taken
    elseif accepted >= room then
      code = 11
    else
      number = number + 1
      taken = taken + quantity
      local number_text = string.format('%d', number)
      -- The quantity as it came: `whole` lets no other spelling through.
      local text = 'Q ' .. number_text .. ' ' .. ARGV[at + 2] .. tail .. user
      new_records[request_id] = text
      new_owned[user], new_first[user] = (owned or 0) + quantity, first or request_id
      accepted = accepted + 1
      accepted_request_ids[accepted], payloads[accepted] = request_id, ARGV[at + 3] .. middle .. number_text .. at_end
      ledger_writes[2 * accepted - 1], ledger_writes[2 * accepted] = request_id, text
    end
  end
  reply[2 * i - 1], reply[2 * i] = code, detail
end

if accepted == 0 then return reply end
for user, owned in pairs(new_owned) do
  buyer_writes[#buyer_writes + 1] = user
  buyer_writes[#buyer_writes + 1] = string.format('%d', owned) .. ' ' .. new_first[user]
end
local number_now, taken_now = string.format('%d', number), string.format('%d', taken)

-- Writes. Outbox first: it is the one that would refuse (memory, missing stream), and then nothing has happened.
for i = 1, accepted do
  local request_id, payload = accepted_request_ids[i], payloads[i]
  if OUTBOX == 'list' then
    redis.call('LPUSH', outbox_key, at_ms .. '-' .. request_id .. ' ' .. sale .. ' ' .. payload)
  else
    redis.call('XADD', outbox_key, 'NOMKSTREAM', '*', 'r', request_id, 's', sale, 'p', payload)
  end
end
redis.call('HSET', ledger_key, unpack(ledger_writes)) -- @slot ledger
redis.call('HSET', buyers_key, unpack(buyer_writes))
if counted then
  redis.call('HSET', meta_key, 'number', number_now, 'accepted', number_now .. ' ' .. string.format('%d', counted + taken))
else
  redis.call('HSET', meta_key, 'number', number_now)
end
redis.call('DECRBY', stock_key, taken_now)
return reply
