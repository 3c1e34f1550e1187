#!lua flags=allow-oom
-- Moves one sale on one shard to another state, if it is in one of the states it may come from.
--
-- KEYS[1] meta
-- ARGV[1] new state, ARGV[2] last epoch that the caller has judged (empty: whatever epoch it is), ARGV[3...] states it may come from
--         (the new one counts as there already)
-- Returns the state before the call; an empty string when the keys are missing
--
-- Read and write are one step, so a pause cannot overwrite a freeze that came in between. Keys of a later epoch are what a rebuild
-- made meanwhile: whoever judged what was there before it, and slept, changes nothing of them. Allowed when memory is full: a sale
-- must be stoppable then, and a state is as long as another.

local meta = redis.call('HMGET', KEYS[1], 'state', 'epoch')
local state = meta[1]
if not state then return '' end
if ARGV[2] ~= '' and (tonumber(meta[2] or '') or 0) > tonumber(ARGV[2]) then return state end
for i = 3, #ARGV do
  if ARGV[i] == state then
    redis.call('HSET', KEYS[1], 'state', ARGV[1])
    break
  end
end
return state
