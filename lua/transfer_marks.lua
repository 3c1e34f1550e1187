#!lua flags=no-writes
-- P2 and P5: what one bucket remembers of its transfers with the other buckets, all of one moment (B4).
--
-- KEYS[1] meta, KEYS[2] transfers (hash: target shard -> "<number> <units> <epoch>")
-- ARGV[1] number of shards
-- Returns {epoch, and four for each shard: number of the last transfer taken for it, that transfer's record while it is not
--         forgotten, number of the last transfer that it gave, "<number> <units>" of that one}, '' for what is not there;
--         {} when the meta is missing
--
-- Read only. To be compared with what the other bucket of each pair remembers.

local epoch = redis.call('HGET', KEYS[1], 'epoch')
if not epoch then return {} end
local marks = { epoch }
for shard = 0, tonumber(ARGV[1]) - 1 do
  local of_pair = redis.call('HMGET', KEYS[1], 'to:' .. shard, 'from:' .. shard, 'got:' .. shard)
  local record = redis.call('HGET', KEYS[2], tostring(shard))
  marks[#marks + 1] = of_pair[1] or ''
  marks[#marks + 1] = record or ''
  marks[#marks + 1] = of_pair[2] or ''
  marks[#marks + 1] = of_pair[3] or ''
end
return marks
