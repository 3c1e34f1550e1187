#!lua flags=allow-oom
-- Moves one sale on one shard to another state, if it is in one of the states it may come from.
--
-- KEYS[1] meta
-- ARGV[1] new state, ARGV[2...] states it may come from (the new one counts as there already)
-- Returns the state before the call; an empty string when the keys are missing
--
-- Read and write are one step, so a pause cannot overwrite a freeze that came in between. Allowed when memory is full: a sale
-- must be stoppable then, and a state is as long as another.

local state = redis.call('HGET', KEYS[1], 'state')
if not state then return '' end
for i = 2, #ARGV do
  if ARGV[i] == state then
    redis.call('HSET', KEYS[1], 'state', ARGV[1])
    break
  end
end
return state
