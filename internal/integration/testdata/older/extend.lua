-- extend: give a lock that is still mine a full TTL again.
--
-- KEYS     of the lock; their counters live for a day after anybody has used them, and
--          up to an hour longer
-- ARGV[1]  token, ARGV[2] TTL in milliseconds, ARGV[3] the ways to hold the keys
-- reply    time                 still mine, and prolonged; the node's, in microseconds
--          0                    gone: expired, deleted, or the node forgot
--          {pttl, holder}       another's
--          error WRONGTYPE      a key is no lock
--
-- Atomic, because between a look and a PEXPIRE the key may expire and become
-- another's, whose TTL we would then set. A missing key is only reported, never
-- made again here: the caller must know which nodes were filled up anew, since
-- those say nothing about the time in between. The node's marker is not asked: a
-- key that is still mine was not forgotten.
looking()
local left = {}
for i = 1, #ARGV[3] do
  local key, way = KEYS[i], string.sub(ARGV[3], i, i)
  local who, rest, ttl = holder(key, way, ARGV[1])
  left[i] = ttl
  if not who then
    return 0
  elseif type(who) == 'table' then
    return who
  elseif who ~= true then
    return {rest, who}
  end
end
for i = 1, #ARGV[3] do
  local key, way = KEYS[i], string.sub(ARGV[3], i, i)
  redis.call('PEXPIRE', counter(key, way), '90000000') -- first: a server that is full lets a script go on that has written
  if range[way] then
    hold(key, way, ARGV[1], ARGV[2], left[i])
  else
    redis.call('PEXPIRE', key, ARGV[2])
  end
end
return clock()
