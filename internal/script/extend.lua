-- extend: give a lock that is still mine a full TTL again.
--
-- KEYS[1]  the lock
-- KEYS[2]  its counter, which lives for a day after anybody has used it, and up to an hour longer
-- ARGV[1]  token, ARGV[2] TTL in milliseconds
-- reply    time                 still mine, and prolonged; the node's, in microseconds
--          0                    gone: expired, deleted, or the node forgot
--          {pttl, holder}       another's
--          error WRONGTYPE      the key is not a string
--
-- Atomic, because between a GET and a PEXPIRE the key may expire and become
-- another's, whose TTL we would then set. A missing key is only reported, never
-- made again here: the caller must know which nodes were filled up anew, since
-- those say nothing about the time in between. The node's marker is not asked: a
-- key that is still mine was not forgotten.
local holder = redis.call('GET', KEYS[1])
if holder == ARGV[1] then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  redis.call('PEXPIRE', KEYS[2], 90000000)
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
if not holder then
  return 0
end
return {redis.call('PTTL', KEYS[1]), holder}
