#!lua
-- P2 reserve: decides a group of purchase requests of one sale on one shard, atomically.
--
-- Each accepted request gets, in this one step: its units off the bucket, its buyer's record, its ledger record with the
-- next acceptance number, and its place in an outbox entry. A request id that is in the ledger already is a replay and
-- changes nothing.
--
-- KEYS[1] meta    hash: state, epoch, limit (0: none), cap, number, accepted ("<number> <units>"), starts, ends (Unix ms), door,
--         drop ("<limit> <sale> <sale> ...", the other sales of its drop; a plain sale has none)
-- KEYS[2] stock   string: units left in this bucket
-- KEYS[3] buyers  hash: user -> "<units> <first request id>"; where the sale limits by person: person -> the same
-- KEYS[4] ledger  hash: request id -> "<state> <number> <quantity> <epoch> <at_ms> <reason> <buyer>"; a buyer is "<user>", or
--         "<user>\t<person>" where the sale limits by person (src/domain/buyer.rs)
-- KEYS[5] outbox  stream, or list (see OUTBOX below)
-- KEYS[6] stream outbox: outbox-more, string: orders in the outbox beyond the first of each entry
--         list outbox: hands, hash: relay -> "<last seen> <entries it holds>"
-- ARGV[1] epoch the caller knows, ARGV[2] sale id, ARGV[3] shard, ARGV[4] number of shards, ARGV[5] arguments of a request:
--         2 (request id, buyer; the quantity is 1) or 3 (request id, buyer, quantity); 3p or 4p where the sale limits by person (the
--         same, then the person), ARGV[6] number of texts,
--         ARGV[7] by which door each request came: '0' open, '1' token (it has a purchase token), '2' line (an offer to the next
--         rank of the sale's line); one digit of all, or one for each; then the texts: of each 64 requests the lines "<request id> <quantity> <buyer>\n" of their outbox entry (stream; with a
--         list none); then the request ids of all, the buyers of all, the quantities of all, the persons of all
-- Returns 1 when every request was accepted, else a flat array, for each that was not: its place, code, detail, in the order of
--         places. Codes (domain/reserve.rs): 1 replayed, 2 duplicate buyer (first request id), 3 limit (units owned), 4 short (units left),
--         5 conflict, 6 paused, 7 closed, 8 frozen, 9 keys missing, 10 stale epoch, 11 backlog, 12 damaged,
--         13 warmed for another number of shards, 14 not started (milliseconds until the start), 15 ended,
--         16 the door takes requests with a purchase token only, 17 limit of the drop (units owned over all its sales),
--         18 the door takes offers of the line only
--         Error NOSCRIPT: nothing ran, pass the boot fence first. Error WRONGTYPE: a key is damaged (12), nothing was written
--
-- Why nothing can be half done: every key is read, and every number is checked, before the first write; memory is checked by
-- Redis before the script starts (the #!lua line without allow-oom); between the writes nothing can fail, and no pcall
-- hides an error. Replay comes first: a winner's retry must get "accepted" after sell-out, pause and end alike.
-- A drop's limit counts what a buyer has in all its sales. There is no sum of it that could be lost, rewound or edited: the script
-- reads the buyers of the other sales, too, by keys that it makes from its own, since all about one buyer is on one shard. A sale
-- sells nothing while one of them is frozen or not whole, because then it is not known what a buyer has. A plain sale reads one
-- field more.
--
-- All work is O(group), times the sales of a drop; the hashes and the outbox are only touched by key (the hands are as many as relays at work).
--
-- What a request costs here is mostly Lua's: some 50 machine instructions a bytecode, 400 a new string. So the usual group, new
-- requests of new buyers for one unit each, has a short way; any other request goes the long one.

-- A line that ends in "@slot" may be replaced before the script is loaded (src/store/redis/scripts/reserve.rs).
-- The key prefix of the system, so that no two systems on one server share this script's SHA-1. -- @slot system

-- The kind of outbox (redis.outbox). An entry of a stream is up to 64 orders, in lines; one of a list is one order, in JSON.
local OUTBOX = 'stream' -- @slot outbox
-- Most orders of an entry: as many as share a message (src/domain/message/mod.rs).
local ENTRY_MAX = 64

-- The replication id of the server. Redis changes it at every promotion. A server that was promoted since the boot fence, and
-- kept its scripts from an earlier time as primary, must not run this one (window 17).
local REPLICATION_ID = '' -- @slot replication_id
if not string.find(redis.call('INFO', 'replication'), 'master_replid:' .. REPLICATION_ID, 1, true) then
  return redis.error_reply('NOSCRIPT this server was promoted since the boot fence')
end

local meta_key, stock_key, buyers_key, ledger_key, outbox_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local epoch, sale, shard, shards = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local WIDTH, texts, came_by = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7]
local BY_PERSON = not WIDTH
if BY_PERSON then WIDTH = tonumber((string.match(ARGV[5], '^([34])p$'))) end
-- What stands before the first one of each kind of argument.
local TEXTS, IDS = 7, 7 + texts
local count = (#ARGV - IDS) / WIDTH
local USERS, QUANTITIES = IDS + count, IDS + 2 * count
-- Whether the requests say their quantities, and what the records of buyers are found by: the user, or the person.
local QUANTIFIED, LIMITED = WIDTH == (BY_PERSON and 4 or 3), BY_PERSON and IDS + (WIDTH - 1) * count or USERS -- @slot limited

local function answer_all(code)
  local exceptions = {}
  for i = 1, count do
    local last = #exceptions
    exceptions[last + 1], exceptions[last + 2], exceptions[last + 3] = i, code, 0
  end
  return exceptions
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
local meta = redis.call('HMGET', meta_key, 'state', 'epoch', 'limit', 'cap', 'number', 'shards', 'accepted', 'starts', 'ends',
  'door', 'drop')
local stock_text = redis.call('GET', stock_key)
local known = redis.call('HMGET', ledger_key, '', unpack(ARGV, IDS + 1, IDS + count))
local bought = redis.call('HMGET', buyers_key, '', unpack(ARGV, LIMITED + 1, LIMITED + count))
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
-- When the sale sells, by this server's clock: the clock of an api process may be wrong. Keys without a window are of 0.1; those
-- of closed sales have none until they are archived, and answer replays as ever.
local starts, ends = whole(meta[8] or '0'), whole(meta[9] or '9007199254740991')
if not (limit and cap and number and stock and starts and ends) then return answer_all(12) end
if OUTBOX == 'stream' and texts ~= math.ceil(count / ENTRY_MAX) then return answer_all(12) end
-- Which requests come in: all ('open', and keys from before there were doors), those with a purchase token and offers ('token'), or
-- offers of its line only ('line'). No process' memory of the sale decides it.
local door = meta[10] or 'open'
-- Whose units count for a limit: "open person" and the like are doors of sales that limit by person. A script that knows no
-- persons takes none of their requests.
local limits_person = false
if door ~= 'open' and door ~= 'token' and door ~= 'line' then
  door = string.match(door, '^(%a+) person$') or door
  limits_person = door ~= meta[10]
end
-- The lowest digit of ARGV[7] that comes in, as a byte, and the answer to those below it. 0: all come in.
local lowest = door == 'token' and 49 or door == 'line' and 50 or 0 -- @slot lowest
local not_let_in = door == 'line' and 18 or 16
-- Units accepted up to a number. Another version of this script may have accepted without counting: then counting stops.
local counted_to, counted_units = string.match(meta[7] or '', '^(%d+) (%d+)$')
local counted = counted_to == meta[5] and whole(counted_units) or nil

local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)

-- The answer to every request that is not a replay, if the sale is not open to it.
local refusal, refusal_detail = nil, 0
-- With another number of shards a buyer would have another home, and could buy there once more.
if meta[6] ~= shards then
  refusal = 13
elseif meta[1] == 'open' then
  if meta[2] ~= epoch then
    refusal = 10
  elseif now_ms < starts then
    refusal, refusal_detail = 14, starts - now_ms
  elseif now_ms >= ends then
    refusal = 15
  elseif lowest == 0 and door ~= 'open' or limits_person ~= BY_PERSON then
    -- Of a later version: this one does not know who may come in. Or the caller counts for others than the sale does.
    refusal = 12
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
-- The limit of the drop, and what the buyer of each request has in its other sales; -1: something there is no number.
local drop_limit, elsewhere
-- Buyers of whom anything is known, here or there. They go the long way.
local with_record = bought
if meta[11] then
  local limit_text, others = string.match(meta[11], '^(%d+)(.*)$')
  drop_limit, elsewhere, with_record = whole(limit_text), {}, {unpack(bought)}
  if not drop_limit then return answer_all(12) end
  local meta_of, buyers_of = string.sub(meta_key, 1, -#sale - 1), string.sub(buyers_key, 1, -#sale - 1)
  for other in string.gmatch(others, '[^ ]+') do -- @slot drop_counted
    local state = redis.call('HGET', meta_of .. other, 'state')
    local there = redis.call('HMGET', buyers_of .. other, '', unpack(ARGV, LIMITED + 1, LIMITED + count))
    if state == 'closed' then
      -- The sales of a drop are closed together: this one is over, too.
      refusal = refusal or 7
    elseif not state or state == 'frozen' then refusal = refusal or 8 -- @slot drop_frozen
    elseif not there[1] then refusal = refusal or 8 -- @slot drop_whole
    end
    for i = 1, count do
      local record = there[i + 1]
      if record then
        local units = whole(string.match(record, '^(%d+) %d+$'))
        if elsewhere[i] == -1 or not units then elsewhere[i] = -1 else elsewhere[i] = (elsewhere[i] or 0) + units end
        with_record[i + 1] = record
      end
    end
  end
end
-- Orders that the outbox may still take. Of a list, the entries in the relays' processing lists are as unsent as those in it.
local room, more = cap - length, '0'
if OUTBOX == 'list' then
  for _, hand in ipairs(redis.call('HVALS', KEYS[6])) do
    room = room - (whole(string.match(hand, '^%d+ (%d+)$')) or 0)
  end
else
  more = redis.call('GET', KEYS[6]) or '0'
  -- Below 0 only after somebody changed it by hand.
  if not whole(string.match(more, '^%-?(.*)$')) then return answer_all(12) end
  -- An empty outbox has no orders, whatever was deleted by hand before: else a backlog that is gone could refuse for ever.
  if length > 0 then room = room - math.max(tonumber(more), 0) end
end

local at_ms = string.format('%d', now_ms)

-- The same in every record of this group.
local tail = ' ' .. epoch .. ' ' .. at_ms .. ' - '
local format, match, find, sub = string.format, string.match, string.find, string.sub

-- Fields and values for the ledger and for the buyers, a pair of each for every accepted request. Made as long as they can get:
-- growing would cost more. What stands in them at first is written over.
local ledger_writes = {unpack(ARGV, IDS + 1, IDS + 2 * count)}
local buyer_writes = {unpack(ARGV, IDS + 1, IDS + 2 * count)}
-- Requests accepted so far, their units beyond one each, and how many of them are of buyers who had a record.
local accepted, extra, of_known
-- Place, code and detail of each request that is not accepted, one behind the other.
local exceptions
-- Ids of the entries written, fewer than orders where they hold many.
local entries

-- Whether new requests of new buyers may go the short way: one unit each, let in by the door, room and units for all. What is known
-- already goes the long way, and costs the others of its group nothing.
local short = OUTBOX == 'stream' and not QUANTIFIED and not refusal and count <= room and count <= stock
  and (lowest == 0 or (#came_by == 1 and string.byte(came_by) >= lowest))
-- Once; a second time, all the long way, when an id or a buyer stands twice among the new ones.
for _ = 1, 2 do
  accepted, extra, of_known, exceptions = 0, 0, 0, {}
  -- Where in the writes the decisions of the long way are: a request id or a buyer may stand twice in a group.
  local record_at, buyer_at = {}, {}
  local args, middle = ARGV, ' 1' .. tail
  -- The last number: its last digit, and a text of the others, which serves ten requests.
  local DIGITS, digit = {[0] = '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'}, number % 10
  local tens = number < 10 and 'Q ' or 'Q ' .. format('%d', (number - digit) / 10)
  for i = 1, count do
    local request_id, user = args[IDS + i], args[USERS + i]
    if short and not known[i + 1] and not with_record[i + 1] then
      accepted, digit = accepted + 1, digit + 1
      if digit == 10 then
        digit, tens = 0, 'Q ' .. format('%d', (number + accepted) / 10)
      end
      local value = 2 * accepted
      local field = value - 1
      ledger_writes[field] = request_id
      ledger_writes[value] = tens .. DIGITS[digit] .. middle .. user
      buyer_writes[field] = args[LIMITED + i]
      buyer_writes[value] = '1 ' .. request_id
    else
      -- The long way. As it came: `whole` lets no other spelling through.
      local quantity_text = QUANTIFIED and args[QUANTITIES + i] or '1'
      local quantity = whole(quantity_text)
      local code, detail = nil, 0
      local record = known[i + 1] or ledger_writes[record_at[request_id]] -- @slot replay_check
      if not quantity or quantity < 1 then
        code = 12
      elseif record then
        local was_quantity, was_user = match(record, '^%a %d+ (%d+) %d+ %d+ %S+ (.*)$')
        if was_user == user and tonumber(was_quantity) == quantity then code = 1 else code = 5 end
      elseif refusal then
        code, detail = refusal, refusal_detail
      elseif lowest > 0 and string.byte(came_by, #came_by > 1 and i or 1) < lowest then
        code = not_let_in
      else
        local key = args[LIMITED + i]
        local at, left = buyer_at[key], stock - accepted - extra
        local owned, first, written = nil, nil, at and buyer_writes[at] or bought[i + 1]
        if written then
          owned, first = match(written, '^(%d+) (%d+)$')
          owned = whole(owned)
        end
        local others = elsewhere and elsewhere[i] or 0
        if (written and not owned) or others < 0 then
          code = 12
        elseif limit == 1 and owned then
          code, detail = 2, first
        elseif limit > 0 and (owned or 0) + quantity > limit then
          code, detail = 3, owned or 0
        elseif drop_limit and (owned or 0) + others + quantity > drop_limit then
          code, detail = 17, (owned or 0) + others
        elseif left < quantity then
          code, detail = 4, left
        elseif accepted >= room then
          code = 11
        else
          accepted, extra = accepted + 1, extra + quantity - 1
          digit = (number + accepted) % 10
          tens = number + accepted < 10 and 'Q ' or 'Q ' .. format('%d', (number + accepted - digit) / 10)
          local value = 2 * accepted
          record_at[request_id], buyer_at[key] = value, value
          ledger_writes[value - 1] = request_id
          ledger_writes[value] = tens .. DIGITS[digit] .. ' ' .. quantity_text .. tail .. user
          buyer_writes[value - 1] = key
          -- Of two with one field the later counts.
          if written then
            of_known, buyer_writes[value] = of_known + 1, format('%d', owned + quantity) .. ' ' .. first
          else
            buyer_writes[value] = quantity_text .. ' ' .. request_id
          end
        end
      end
      if code then
        local last = #exceptions
        exceptions[last + 1], exceptions[last + 2], exceptions[last + 3] = i, code, detail
      end
    end
  end

  if accepted == 0 then return exceptions end
  -- Writes. Outbox first: it is the one that would refuse (memory, missing stream), and then nothing has happened.
  entries = {}
  -- Orders before an entry, and the next exception.
  local before, passed = number, 1
  if OUTBOX == 'stream' then
    for entry = 1, texts do
      local from, to, first = (entry - 1) * ENTRY_MAX + 1, entry * ENTRY_MAX, passed
      if to > count then to = count end
      while exceptions[passed] and exceptions[passed] <= to do passed = passed + 3 end
      local orders, lines = to - from + 1 - (passed - first) / 3, ARGV[TEXTS + entry]
      if passed > first and not short then
        local left, at = {}, first
        for i = from, to do
          if exceptions[at] == i then
            at = at + 3
          else
            local quantity_text = QUANTIFIED and ARGV[QUANTITIES + i] or '1'
            left[#left + 1] = ARGV[IDS + i] .. ' ' .. quantity_text .. ' ' .. ARGV[USERS + i] .. '\n'
          end
        end
        lines = table.concat(left)
      end
      if orders > 0 then
        local common = '@' .. shard .. ' ' .. epoch .. ' ' .. at_ms .. ' ' .. format('%d', before + 1) .. ' ' .. sale
        if passed > first and short then
          -- The lines of exceptions are left out, each searched behind the one before it. Few texts are made: what the collector has to
          -- do grows with their length.
          local left, rest = {common .. '\n'}, 1
          for at = first, passed - 1, 3 do
            local place = exceptions[at]
            local begins = place == from and 0 or find(lines, '\n' .. ARGV[IDS + place] .. ' ', rest - 1, true)
            left[#left + 1], rest = sub(lines, rest, begins), find(lines, '\n', begins + 1, true) + 1
          end
          left[#left + 1] = sub(lines, rest)
          lines = table.concat(left)
        else
          lines = common .. '\n' .. lines
        end
        entries[#entries + 1] = redis.call('XADD', outbox_key, 'NOMKSTREAM', '*', 's', sale, 'n', orders, 'o', lines)
        before = before + orders
      end
    end
  else
    -- A text in JSON. Ids have no control characters (src/domain/ids.rs); a TAB is between a user and a person.
    local function quoted(text)
      if find(text, '["\\]') then text = string.gsub(text, '["\\]', '\\%0') end
      if BY_PERSON then text = string.gsub(text, '\t', '\\t') end
      return '"' .. text .. '"'
    end
    local function head(id, user, quantity) return '{"v":1,"rid":"' .. id .. '","sale":"' .. sale .. '","user":' .. quoted(user) .. ',"qty":' .. quantity end -- @slot head
    local middle, at_end = ',"shard":' .. shard .. ',"epoch":' .. epoch .. ',"no":', ',"at":' .. at_ms .. '}'
    for i = 1, count do
      if exceptions[passed] == i then
        passed = passed + 3
      else
        local id, quantity_text = ARGV[IDS + i], QUANTIFIED and ARGV[QUANTITIES + i] or '1'
        before = before + 1
        local payload = head(id, ARGV[USERS + i], quantity_text) .. middle .. format('%d', before) .. at_end
        redis.call('LPUSH', outbox_key, at_ms .. '-' .. id .. ' ' .. sale .. ' ' .. payload)
      end
    end
  end
  local new = accepted
  new = redis.call('HSET', ledger_key, unpack(ledger_writes, 1, 2 * accepted)) -- @slot ledger
  new = new + redis.call('HSET', buyers_key, unpack(buyer_writes, 1, 2 * accepted))
  if not short then break end
  -- A new request of a known buyer may have the id of one that was accepted before it in this group: then it is a replay of that one.
  local refused, is_twice = {}, new ~= 2 * accepted - of_known
  for at = 1, #exceptions, 3 do
    if not known[exceptions[at] + 1] then refused[#refused + 1] = ARGV[IDS + exceptions[at]] end
  end
  local found = #refused > 0 and redis.call('HMGET', ledger_key, unpack(refused)) or refused
  for at = 1, #refused do is_twice = is_twice or found[at] end
  if not is_twice then break end

  -- An id or a buyer stands twice. What was written is taken back, so that everything is as it was. Nobody sees anything of it,
  -- and a crash leaves all that this script does or nothing.
  redis.call('XDEL', outbox_key, unpack(entries))
  for at = 1, 2 * accepted, 2 do
    redis.call('HDEL', ledger_key, ledger_writes[at])
    redis.call('HDEL', buyers_key, buyer_writes[at])
  end
  for i = 1, count do
    if bought[i + 1] then redis.call('HSET', buyers_key, ARGV[LIMITED + i], bought[i + 1]) end
  end
  short = false
end

-- The counters.
if OUTBOX == 'stream' then
  if length == 0 and more ~= '0' then redis.call('DEL', KEYS[6]) end
  if accepted > #entries then redis.call('INCRBY', KEYS[6], accepted - #entries) end
end
local number_now = format('%d', number + accepted)
if counted then
  redis.call('HSET', meta_key, 'number', number_now, 'accepted', number_now .. ' ' .. format('%d', counted + accepted + extra))
else
  redis.call('HSET', meta_key, 'number', number_now)
end
redis.call('DECRBY', stock_key, format('%d', accepted + extra))
return #exceptions == 0 and 1 or exceptions
