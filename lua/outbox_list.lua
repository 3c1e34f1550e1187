#!lua flags=allow-oom
-- P3, list outbox (C8): all that a relay does to a shard's outbox without streams. One file, so that the format of an entry and
-- the rule which relay is alive are in one place.
--
-- KEYS[1] outbox list, KEYS[2] the caller's processing list, KEYS[3] hands, KEYS[4] attempts,
-- KEYS[5] relay DLQ (sorted set, score 0), KEYS[6] another relay's processing list (take_over only)
-- ARGV[1] what to do, ARGV[2] the caller's name, then its arguments, as written at each act below
-- Returns as written there; entries as id, entry, id, entry, ...
--
-- An entry is one string, "<id> <sale> <payload>", its id "<at_ms>-<request id>" (written by
-- reserve.lua, read by src/store/redis/outbox/list_entry_codec.rs). New entries come in at the left of the outbox and leave at its right, into the right end of a processing list.
-- Hands: name -> "<last seen, ms> <entries held>", written in the step that changes a processing list. A name is there
-- exactly while its list is, so a dead relay that left nothing leaves no name either.
--
-- A relay's call only changes entries in its own list: a relay that was frozen while another one took over counts and parks
-- nothing (window 29). Time is Redis' own. Allowed when memory is full: entries move, and moving on frees them.

local outbox, mine, hands, attempts, dlq = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local name = ARGV[2]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- A string that is not an entry has a name too, so that it can be parked.
local function id_of(entry)
  return string.match(entry, '^(%d+%-%d+) ') or ('x' .. redis.sha1hex(entry))
end

local function seen(who, list, at)
  local held = redis.call('LLEN', list)
  if held == 0 then
    redis.call('HDEL', hands, who)
  else
    redis.call('HSET', hands, who, string.format('%.0f', at) .. ' ' .. string.format('%.0f', held))
  end
end

-- Moves up to `count` entries to the caller's list and returns id, entry, id, entry, ...
local function move(from, side, count)
  local reply = {}
  for _ = 1, count do
    local entry = redis.call('LMOVE', from, mine, side, 'RIGHT')
    if not entry then break end
    reply[#reply + 1] = id_of(entry)
    reply[#reply + 1] = entry
  end
  return reply
end

-- The entries of the caller's list by id.
local function held_by_id()
  local held = {}
  for _, entry in ipairs(redis.call('LRANGE', mine, 0, -1)) do held[id_of(entry)] = entry end
  return held
end

local act = {}

-- ARGV[3] count. Takes new entries, the oldest first. An idle relay writes nothing.
function act.take()
  local reply = move(outbox, 'RIGHT', tonumber(ARGV[3]))
  if #reply > 0 then seen(name, mine, now) end
  return reply
end

-- Everything in the caller's list: what its life before this one left, or a reply that got lost (window 26).
function act.own()
  local reply = {}
  for _, entry in ipairs(redis.call('LRANGE', mine, 0, -1)) do
    reply[#reply + 1] = id_of(entry)
    reply[#reply + 1] = entry
  end
  if #reply > 0 then seen(name, mine, now) end
  return reply
end

-- ARGV[3] count, ARGV[4] the other's name, ARGV[5] silence (ms). Takes entries of a relay that was silent for so long, or of
-- a list that no hand belongs to (then somebody deleted the hands). A last sight in the future is a clock that was set back:
-- the silence begins now.
function act.take_over()
  local other, theirs = ARGV[4], KEYS[6]
  local hand = redis.call('HGET', hands, other)
  local last = hand and tonumber(string.match(hand, '^(%d+) '))
  if last and last > now then
    seen(other, theirs, now)
    return {}
  end
  if last and now - last < tonumber(ARGV[5]) then return {} end
  local reply = move(theirs, 'LEFT', tonumber(ARGV[3]))
  seen(other, theirs, last or 0)
  if #reply > 0 then seen(name, mine, now) end
  return reply
end

-- ARGV[3...] ids. The broker confirmed them: they go, with their attempts. Returns how many went. Confirms come in the order
-- of the list, mostly, and then each is one LPOP.
function act.done()
  local wanted = {}
  for i = 3, #ARGV do wanted[ARGV[i]] = true end
  local popped, gone = 0, {}
  for i, entry in ipairs(redis.call('LRANGE', mine, 0, -1)) do
    local id = id_of(entry)
    if wanted[id] then
      gone[#gone + 1] = id
      if i == popped + 1 then
        redis.call('LPOP', mine)
        popped = i
      else
        redis.call('LREM', mine, 1, entry)
      end
    end
  end
  if #gone > 0 then
    redis.call('HDEL', attempts, unpack(gone))
    seen(name, mine, now)
  end
  return #gone
end

-- ARGV[3...] ids. Counts one failed attempt for each that is still the caller's; returns the counts, 0 for the others.
function act.failed()
  local held, counts = held_by_id(), {}
  for i = 3, #ARGV do
    counts[#counts + 1] = held[ARGV[i]] and redis.call('HINCRBY', attempts, ARGV[i], 1) or 0
  end
  return counts
end

-- ARGV[3...] ids. The caller is alive. Returns the ids that are still its own.
function act.touch()
  local held, own = held_by_id(), {}
  for i = 3, #ARGV do
    if held[ARGV[i]] then own[#own + 1] = ARGV[i] end
  end
  if #own > 0 then seen(name, mine, now) end
  return own
end

-- ARGV[3] id, ARGV[4] reason, ARGV[5] attempts. Moves an entry to the relay DLQ as "<its id there> <attempts> <length of the
-- reason> <reason><entry>"; the DLQ gets it before the list loses it (window 43). Returns 1, or 0: not the caller's (any more).
function act.park()
  local entry = held_by_id()[ARGV[3]]
  if not entry then return 0 end
  local id = string.format('%.0f', now) .. '-' .. ARGV[3]
  redis.call('ZADD', dlq, 0, id .. ' ' .. ARGV[5] .. ' ' .. #ARGV[4] .. ' ' .. ARGV[4] .. entry)
  redis.call('LREM', mine, 1, entry)
  redis.call('HDEL', attempts, ARGV[3])
  seen(name, mine, now)
  return 1
end

return act[ARGV[1]]()
