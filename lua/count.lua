#!lua flags=no-writes
-- P5: what one shard holds of a sale, all of one moment, so that the sums add up while buyers go on buying.
--
-- KEYS[1] meta, KEYS[2] stock, KEYS[3] grants (hash: grant id -> units)
-- ARGV: none
-- Returns {state, epoch, number, stock, units of all grants, number of grants, units sent to other shards less units
-- received, of the ledger records that were trimmed: count, units ordered, units failed, and the units ever accepted in this
-- epoch (empty where not all of them were counted)}; {} without meta
--
-- Read only. The ledger is not touched, and of more than FEW grants the kept sum is read (grant.lua): each cancelled order is a
-- grant, and they may be a million. That sum is true while its number of grants is; a version that does not keep it gives grants,
-- too. A few are summed one by one, so that also a value that a person changed shows. Sent less received belongs to this very
-- moment, so each shard adds up by itself, whatever moves while the others are counted.

-- As in grant.lua.
local FEW = 128

local meta = redis.call('HMGET', KEYS[1], 'state', 'epoch', 'number', 'trimmed_count', 'trimmed_ordered', 'trimmed_failed', 'out', 'in',
  'accepted', 'granted')
if not meta[1] then return {} end
local grants = redis.call('HLEN', KEYS[3])
local of, units = string.match(meta[10] or '', '^(%d+) (%-?%d+) %d+$')
local granted = tonumber(units)
if grants <= FEW or tonumber(of) ~= grants then
  granted = 0
  for _, value in ipairs(redis.call('HVALS', KEYS[3])) do granted = granted + tonumber(value) end
end
-- Counted up to the newest number, or not at all: another version may have accepted without counting.
local counted_to, counted = string.match(meta[9] or '', '^(%d+) (%d+)$')
local in_transit = tonumber(meta[7] or '0') - tonumber(meta[8] or '0')
return {
  meta[1], meta[2], meta[3], redis.call('GET', KEYS[2]) or '', granted, grants, in_transit,
  meta[4] or '0', meta[5] or '0', meta[6] or '0', counted_to == meta[3] and counted or ''
}
