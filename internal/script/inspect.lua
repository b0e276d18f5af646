-- inspect: what this node knows about a lock and about itself.
--
-- KEYS[1]  the lock
-- KEYS[2]  the node's marker; absent: do not reply it
-- ARGV[1]  the bucket of the lock's key
-- reply    {holder, pttl, number, marker, time, {member, ticket, …}, {token, score, …}}
--          '' stands for no exclusive holder, no number and no marker. number is that of the lock's bucket, which other
--          names may have raised. time is the node's, in microseconds. Then follow the first 1,000 of the queue as it is,
--          dead waiters included, and the members of the key's set, expired ones included (kinds.lua).
--          error WRONGTYPE      the key is no lock
--
-- Atomic, because holder, TTL and number must be of one instant.
local alone, others = redis.pcall('GETRANGE', KEYS[1], '0', $lastOfToken), {}
if type(alone) == 'table' then
  local first = redis.pcall('ZRANGE', KEYS[1], '0', '0')
  if redis.call('PTTL', KEYS[1]) < 0 or first.err or first[1] and not string.find(first[1], $signature) then
    return alone
  end
  alone, others = '', redis.call('ZRANGE', KEYS[1], '0', '999', 'WITHSCORES')
end
local time = redis.call('TIME')
local marker = ''
if KEYS[2] then
  marker = redis.call('MGET', KEYS[2])[1] or ''
end
local number = tonumber(redis.call('ZSCORE', $fences, ARGV[1]) or 0)
number = number > 0 and string.format('%.0f', number) or ''
local waiters = redis.pcall('ZRANGE', KEYS[1] .. $queueSuffix, '0', '0')
if waiters[1] and string.find(waiters[1], $signature) then
  waiters = redis.call('ZRANGE', KEYS[1] .. $queueSuffix, '0', '999', 'WITHSCORES')
else
  waiters = {} -- or it is no queue of ours
end
return {alone, redis.call('PTTL', KEYS[1]), number, marker, time[1] * 1000000 + time[2], waiters, others}
