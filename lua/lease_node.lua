#!lua
-- Leases a node id for request ids, or renews a lease, with a time fence.
--
-- KEYS[1] nodes (hash: node id -> "<fence_ms> <owner>")
-- ARGV[1] node id, ARGV[2] owner, ARGV[3] the caller's clock (ms), ARGV[4] lease (ms), ARGV[5] "1" to take it from another
--         owner whose fence is behind the caller's clock
-- Returns {fence before, fence now}; {fence, 0} when another owner holds it
--
-- Uniqueness never depends on clocks: a holder makes ids only up to its fence and the next one starts after it. The clock
-- only guesses whether the holder is gone. Fences never move back.

local fence, owner = 0, ARGV[2]
local record = redis.call('HGET', KEYS[1], ARGV[1])
if record then
  local fence_text, owner_text = string.match(record, '^(%d+) (.*)$')
  fence, owner = tonumber(fence_text), owner_text
end
local now, lease = tonumber(ARGV[3]), tonumber(ARGV[4])
if owner ~= ARGV[2] and not (ARGV[5] == '1' and fence < now) then return { fence, 0 } end
local new_fence = math.max(fence, now + lease)
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f', new_fence) .. ' ' .. ARGV[2])
return { fence, new_fence }
