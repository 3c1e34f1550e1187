#!lua
-- Takes several buyers into the waiting room of one sale and returns their places.
--
-- KEYS[1] room (sorted set: user -> a draw below 1 who came before the start, the number of the arrival who came later),
-- KEYS[2] door (hash: drawn, begun, released, part, at, signed), KEYS[3] meta of the sale on the same shard
-- ARGV[1] start of the sale as the caller knows it, ARGV[2] when the keys go (both ms since 1970), ARGV[3] places the room has; then for each
--         buyer: user, a random number in [0, 1)
-- Returns an array: arrivals; then for each buyer the place (from 1), 0 when places are not drawn yet, -1 when the room is full
--
-- The clock is the server's own, and so is the start once the sale is warmed: the caller may know an older one, and would end the
-- draw for good. The first call at or after the start sets `begun`, and from then on no buyer is put among the
-- early ones any more, whatever the clock does: places are final. A later score is the number of arrivals, which only grows,
-- so it is above all others. Who is in the room already keeps the first score. Losing one key only cannot happen; losing
-- both begins a new room. All reads and checks come before the first write.

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local count = redis.call('ZCARD', KEYS[1])
local begun = redis.call('HEXISTS', KEYS[2], 'begun') == 1
local starts = tonumber(redis.call('HGET', KEYS[3], 'starts') or ARGV[1])
local goes, most = tonumber(ARGV[2]), tonumber(ARGV[3])
local wrote = false
if not begun and now >= starts then
  redis.call('HSET', KEYS[2], 'begun', string.format('%.0f', now), 'drawn', count)
  begun, wrote = true, true
end
local reply = { 0 }
for i = 4, #ARGV, 2 do
  local user, place = ARGV[i], 0
  if not redis.call('ZSCORE', KEYS[1], user) then
    if count >= most then
      place = -1
    else
      count = count + 1
      redis.call('ZADD', KEYS[1], begun and count or ARGV[i + 1], user)
      wrote = true
    end
  end
  if place == 0 and begun then place = redis.call('ZRANK', KEYS[1], user) + 1 end
  reply[#reply + 1] = place
end
if wrote then
  redis.call('PEXPIREAT', KEYS[1], goes)
  redis.call('PEXPIREAT', KEYS[2], goes)
end
reply[1] = count
return reply
