-- inspect: what this node knows of a lock, and of itself.
--
-- KEYS[1]  the lock
-- KEYS[2]  its counter
-- KEYS[3]  the node's marker; not there: nobody asks whether the node forgot
-- reply    {holder, pttl, number, marker, time}
--          with '' for no holder, no number and no marker, and the node's time in
--          microseconds
--          error WRONGTYPE      the lock is not a string
--
-- Atomic, because holder, TTL and number must be of one instant.
local holder = redis.call('GET', KEYS[1]) or ''
local time = redis.call('TIME')
local marker = ''
if KEYS[3] then
  marker = redis.call('GET', KEYS[3]) or ''
end
return {holder, redis.call('PTTL', KEYS[1]), redis.call('GET', KEYS[2]) or '', marker, time[1] * 1000000 + time[2]}
