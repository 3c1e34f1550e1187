#!lua
-- P5 rebuild (E7), last step: sets the stock and opens the sale.
--
-- KEYS[1] meta, KEYS[2] stock, KEYS[3] grants
-- ARGV[1] epoch being built, ARGV[2] units for this shard, ARGV[3] state to open with (open or paused),
--         ARGV[4...] ids of grants whose units are among these: a later call that gives one of them gives nothing
-- Returns 1 opened, 0 the sale is not being rebuilt in this epoch (done before, or begun anew)
--
-- Stock, its grant, the ids and the state come in one step: a sale never sells before all of it is there. `page` is there from
-- the beginning to the end of a rebuild, so keys of this epoch that were opened and frozen again are not taken for it.
--
-- Of more than FEW grants the meta has the sum (grant.lua), which is that of the rebuild: the keys were begun without any other.

-- As in grant.lua.
local FEW = 128

local meta = redis.call('HMGET', KEYS[1], 'state', 'epoch', 'page')
if meta[1] ~= 'frozen' or meta[2] ~= ARGV[1] or not meta[3] then return 0 end
redis.call('SET', KEYS[2], ARGV[2])
for i = 4, #ARGV do redis.call('HSET', KEYS[3], ARGV[i], '0') end
redis.call('HSET', KEYS[3], 'rebuild-' .. ARGV[1], ARGV[2])
local number = redis.call('HLEN', KEYS[3])
if number > FEW then redis.call('HSET', KEYS[1], 'granted', string.format('%.0f', number) .. ' ' .. ARGV[2] .. ' 0') end
redis.call('HSET', KEYS[1], 'state', ARGV[3])
redis.call('HDEL', KEYS[1], 'page')
return 1
