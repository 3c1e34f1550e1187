#!lua flags=no-writes
-- What one shard holds of a sale, all of one moment: the audit's snapshot.
--
-- KEYS[1] meta, KEYS[2] stock, KEYS[3] grants, KEYS[4] transfers
-- ARGV: none
-- Returns {{state, epoch, number}, units in the bucket, units of each grant, units of each transfer record}
--
-- One script, because purchases accepted between two reads would be in the stock and not in the number: an audit of a
-- selling sale would not add up. Grants and transfers are few; nothing here grows with the buyers.

return {
  redis.call('HMGET', KEYS[1], 'state', 'epoch', 'number'),
  redis.call('GET', KEYS[2]),
  redis.call('HVALS', KEYS[3]),
  redis.call('HVALS', KEYS[4]),
}
