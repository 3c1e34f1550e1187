#!lua flags=allow-oom
-- P5: removes a closed sale's keys from one shard once its ledger is empty, so that Redis does not grow with every sale.
--
-- KEYS[1] meta, KEYS[2] stock, KEYS[3] buyers, KEYS[4] ledger, KEYS[5] grants, KEYS[6] transfers
-- ARGV: none
-- Returns 1 removed, 0 not yet (not closed, records left, or units between two buckets)
--
-- Checked and removed in one step: a record that is still in the ledger is a request that still has to be answered.

if redis.call('HGET', KEYS[1], 'state') ~= 'closed' then return 0 end
-- One field is left: the mark that the hash was created (activate.lua).
if redis.call('HLEN', KEYS[4]) > 1 or redis.call('EXISTS', KEYS[6]) == 1 then return 0 end
redis.call('UNLINK', KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5])
return 1
