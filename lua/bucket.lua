#!lua flags=no-writes
-- P2: one bucket of a sale, all of one moment, to tell what is left of it over all shards.
--
-- KEYS[1] meta, KEYS[2] stock
-- ARGV: none
-- Returns {state, epoch, number, stock, units sent away, units received}; {} when meta or stock is missing
--
-- Read only. Number and the two sums only grow, so two looks that are alike had nothing happen between them.

local meta = redis.call('HMGET', KEYS[1], 'state', 'epoch', 'number', 'out', 'in')
local stock = redis.call('GET', KEYS[2])
if not (meta[1] and stock) then return {} end
return { meta[1], meta[2], meta[3], stock, meta[4] or '0', meta[5] or '0' }
