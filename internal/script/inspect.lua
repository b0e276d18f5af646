-- inspect: what this node knows of a lock, and of itself.
--
-- KEYS[1]  the lock
-- KEYS[2]  its counter
-- KEYS[3]  its queue
-- KEYS[4]  the node's marker; not there: nobody asks whether the node forgot
-- reply    {holder, pttl, number, marker, time, {member, ticket, …}}
--          with '' for no holder, no number and no marker, the node's time in
--          microseconds, and the queue as it is, with who may be dead
--          error WRONGTYPE      the lock is not a string, or the queue none
--
-- Atomic, because holder, TTL and number must be of one instant.
local holder = redis.call('GET', KEYS[1]) or ''
local time = redis.call('TIME')
local marker = ''
if KEYS[4] then
  marker = redis.call('GET', KEYS[4]) or ''
end
return {holder, redis.call('PTTL', KEYS[1]), redis.call('GET', KEYS[2]) or '', marker, time[1] * 1000000 + time[2],
  redis.call('ZRANGE', KEYS[3], 0, -1, 'WITHSCORES')}
