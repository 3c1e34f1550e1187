#!lua
-- P2 reserve: decides a group of purchase requests of one sale on one shard, atomically.
--
-- Each accepted request gets, in this one step: its units off the bucket, its buyer's record, its ledger record with the
-- next acceptance number, and its place in an outbox entry. A request id that is in the ledger already is a replay and
-- changes nothing.
--
-- KEYS[1] meta    hash: state, epoch, limit (0: none), cap, number, accepted ("<number> <units>"), starts, ends (Unix ms)
-- KEYS[2] stock   string: units left in this bucket
-- KEYS[3] buyers  hash: user -> "<units> <first request id>"
-- KEYS[4] ledger  hash: request id -> "<state> <number> <quantity> <epoch> <at_ms> <reason> <user>"
-- KEYS[5] outbox  stream, or list (see OUTBOX below)
-- KEYS[6] stream outbox: outbox-more, string: orders in the outbox beyond the first of each entry
--         list outbox: hands, hash: relay -> "<last seen> <entries it holds>"
-- ARGV[1] epoch the caller knows, ARGV[2] sale id, ARGV[3] shard, ARGV[4] number of shards, ARGV[5] arguments of a request:
--         2 (request id, user id; the quantity is 1) or 3 (request id, user id, quantity), then those of each request
-- Returns 1 when every request was accepted, else a flat array, for each request: code, detail. Codes (domain/reserve.rs):
--         0 accepted, 1 replayed, 2 duplicate buyer (first request id), 3 limit (units owned), 4 short (units left),
--         5 conflict, 6 paused, 7 closed, 8 frozen, 9 keys missing, 10 stale epoch, 11 backlog, 12 damaged,
--         13 warmed for another number of shards, 14 not started (milliseconds until the start), 15 ended
--         Error NOSCRIPT: nothing ran, pass the boot fence first. Error WRONGTYPE: a key is damaged (12), nothing was written
--
-- Why nothing can be half done: every key is read, and every number is checked, before the first write; memory is checked by
-- Redis before the script starts (the #!lua line without allow-oom); between the writes nothing can fail, and no pcall
-- hides an error. Replay comes first: a winner's retry must get "accepted" after sell-out, pause and end alike.
-- All work is O(group); the hashes and the outbox are only touched by key (the hands are as many as relays at work).

-- A line that ends in "@slot" may be replaced before the script is loaded (src/store/redis/scripts/reserve.rs).
-- The key prefix of the system, so that no two systems on one server share this script's SHA-1. -- @slot system

-- The kind of outbox (redis.outbox).
local OUTBOX = 'stream' -- @slot outbox
-- 1: an entry is one order, in JSON. 2: an entry is up to 64 orders, in lines (redis.outbox_format; a list has 1).
local FORMAT = 1 -- @slot outbox_format
-- Most orders of an entry: as many as share a message (src/domain/message.rs).
local ENTRY_MAX = 64

-- The replication id of a server that can be promoted. Redis changes it at every promotion. A server that was promoted since
-- the boot fence, and kept its scripts from an earlier time as primary, must not run this one (window 17).
local REPLICATION_ID = nil -- @slot replication_id
if REPLICATION_ID and not string.find(redis.call('INFO', 'replication'), 'master_replid:' .. REPLICATION_ID, 1, true) then
  return redis.error_reply('NOSCRIPT this server was promoted since the boot fence')
end

local meta_key, stock_key, buyers_key, ledger_key, outbox_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local epoch, sale, shard, shards = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local FIRST, WIDTH = 6, tonumber(ARGV[5])
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

-- The records of all requests and buyers. The field '' marks both hashes as created, so that an empty hash differs from a
-- lost one. A key of another type raises WRONGTYPE here, before anything is written.
local request_ids, users = { '' }, { '' }
for i = 1, count do
  local at = FIRST + (i - 1) * WIDTH
  request_ids[i + 1], users[i + 1] = ARGV[at], ARGV[at + 1]
end
local meta = redis.call('HMGET', meta_key, 'state', 'epoch', 'limit', 'cap', 'number', 'shards', 'accepted', 'starts', 'ends')
local stock_text = redis.call('GET', stock_key)
local known = redis.call('HMGET', ledger_key, unpack(request_ids))
local bought = redis.call('HMGET', buyers_key, unpack(users))
local length = redis.call(OUTBOX == 'list' and 'LLEN' or 'XLEN', outbox_key)

-- Whether a key is not there; asked only where its content does not say so. A list without entries does not exist, and
-- there is no group that could begin too late (window 25).
local function lost(key) return redis.call('EXISTS', key) == 0 end
if (not meta[1] and lost(meta_key)) or not stock_text or (not known[1] and lost(ledger_key))
  or (not bought[1] and lost(buyers_key)) or (length == 0 and OUTBOX == 'stream' and lost(outbox_key)) then
  return answer_all(9)
end

local limit, cap, number = whole(meta[3]), whole(meta[4]), whole(meta[5])
local stock = whole(stock_text)
-- When the sale sells, by this server's clock: the clock of an api process may be wrong. Keys without it are older, and only
-- the api checks.
local starts, ends = whole(meta[8] or '0'), whole(meta[9] or '9007199254740991')
if not (limit and cap and number and stock and starts and ends) then return answer_all(12) end
-- Units accepted up to a number. Another version of this script may have accepted without counting: then counting stops.
local counted_to, counted_units = string.match(meta[7] or '', '^(%d+) (%d+)$')
local counted = counted_to == meta[5] and whole(counted_units) or nil

local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)

-- The answer to every request that is not a replay, if the sale is not open to it.
local refusal, refusal_detail = nil, 0
-- With another number of shards a buyer would have another home, and could buy there once more. Keys without it are older.
if (meta[6] or '1') ~= shards then
  refusal = 13
elseif meta[1] == 'open' then
  if meta[2] ~= epoch then
    refusal = 10
  elseif now_ms < starts then
    refusal, refusal_detail = 14, starts - now_ms
  elseif now_ms >= ends then
    refusal = 15
  end
elseif meta[1] == 'paused' or meta[1] == 'loaded' then
  refusal = 6
elseif meta[1] == 'closed' then
  refusal = 7
elseif meta[1] == 'frozen' then
  refusal = 8
else
  refusal = 12
end
-- Orders that the outbox may still take. Of a list, the entries in the relays' processing lists are as unsent as those in it.
local room = cap - length
if OUTBOX == 'list' then
  for _, hand in ipairs(redis.call('HVALS', KEYS[6])) do
    room = room - (whole(string.match(hand, '^%d+ (%d+)$')) or 0)
  end
else
  local more = redis.call('GET', KEYS[6]) or '0'
  -- Below 0 only after somebody changed it by hand; it is put right when the outbox is empty.
  if not whole(string.match(more, '^%-?(.*)$')) then return answer_all(12) end
  room = room - math.max(tonumber(more), 0)
end

local at_ms = string.format('%d', now_ms)

-- The same in every record of this group.
local tail = ' ' .. epoch .. ' ' .. at_ms .. ' - '
local first_number = number

local all_accepted = true
local reply, ledger_writes, buyer_writes = {}, {}, {}
-- The decisions of this group so far: a request id or a buyer may come twice in one group.
local new_records, buyer_at, owned_now, first_of = {}, {}, {}, {}
-- Of each accepted request: id, user, quantity.
local accepted, accepted_ids, accepted_users, quantities = 0, {}, {}, {}
local buyers, taken = 0, 0

for i = 1, count do
  local request_id, user = request_ids[i + 1], users[i + 1]
  -- As it came: `whole` lets no other spelling through.
  local quantity_text = WIDTH == 3 and ARGV[FIRST + 3 * i - 1] or '1'
  local quantity = whole(quantity_text)
  local code, detail = 0, 0
  local record = known[i + 1] or new_records[request_id] -- @slot replay_check
  if not quantity or quantity < 1 then
    code = 12
  elseif record then
    local was_quantity, was_user = string.match(record, '^%a %d+ (%d+) %d+ %d+ %S+ (.*)$')
    if was_user == user and tonumber(was_quantity) == quantity then code = 1 else code = 5 end
  elseif refusal then
    code, detail = refusal, refusal_detail
  else
    local at, owned, first = buyer_at[user], nil, nil
    if at then
      owned, first = owned_now[at], first_of[at]
    elseif bought[i + 1] then
      local text_owned, text_first = string.match(bought[i + 1], '^(%d+) (%d+)$')
      owned, first = whole(text_owned), text_first
    end
    if bought[i + 1] and not owned then
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
      accepted = accepted + 1
      accepted_ids[accepted], accepted_users[accepted], quantities[accepted] = request_id, user, quantity_text
      local text = 'Q ' .. string.format('%d', number) .. ' ' .. quantity_text .. tail .. user
      new_records[request_id] = text
      ledger_writes[2 * accepted - 1], ledger_writes[2 * accepted] = request_id, text
      if not at then
        buyers = buyers + 1
        at = buyers
        buyer_at[user], first_of[at] = at, first or request_id
        buyer_writes[2 * at - 1] = user
      end
      owned_now[at] = (owned or 0) + quantity
      buyer_writes[2 * at] = (owned and string.format('%d', owned_now[at]) or quantity_text) .. ' ' .. first_of[at]
    end
  end
  if code > 0 then all_accepted = false end
  reply[2 * i - 1], reply[2 * i] = code, detail
end

if accepted == 0 then return reply end
local number_now, taken_now = string.format('%d', number), string.format('%d', taken)

-- A text in JSON. User ids have no control characters (src/domain/ids.rs).
local function quoted(text)
  if string.find(text, '["\\]') then text = string.gsub(text, '["\\]', '\\%0') end
  return '"' .. text .. '"'
end
local function head(id, user, quantity) return '{"v":1,"rid":"' .. id .. '","sale":"' .. sale .. '","user":' .. quoted(user) .. ',"qty":' .. quantity end -- @slot head

-- Writes. Outbox first: it is the one that would refuse (memory, missing stream), and then nothing has happened.
if FORMAT == 2 then
  for from = 1, accepted, ENTRY_MAX do
    local to = math.min(from + ENTRY_MAX - 1, accepted)
    local lines = { '@' .. shard .. ' ' .. epoch .. ' ' .. at_ms .. ' ' .. string.format('%d', first_number + from) .. ' ' .. sale }
    for i = from, to do lines[i - from + 2] = accepted_ids[i] .. ' ' .. quantities[i] .. ' ' .. accepted_users[i] end
    lines[to - from + 3] = ''
    redis.call('XADD', outbox_key, 'NOMKSTREAM', '*', 's', sale, 'n', to - from + 1, 'o', table.concat(lines, '\n'))
    if to > from then redis.call('INCRBY', KEYS[6], to - from) end
  end
else
  local middle, at_end = ',"shard":' .. shard .. ',"epoch":' .. epoch .. ',"no":', ',"at":' .. at_ms .. '}'
  for i = 1, accepted do
    local id = accepted_ids[i]
    local payload = head(id, accepted_users[i], quantities[i]) .. middle .. string.format('%d', first_number + i) .. at_end
    if OUTBOX == 'list' then
      redis.call('LPUSH', outbox_key, at_ms .. '-' .. id .. ' ' .. sale .. ' ' .. payload)
    else
      redis.call('XADD', outbox_key, 'NOMKSTREAM', '*', 'r', id, 's', sale, 'p', payload)
    end
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
return all_accepted and 1 or reply
