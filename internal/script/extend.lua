-- extend: give a lock that is still mine a full TTL again.
--
-- KEYS[1]  the lock
-- ARGV[1]  token, ARGV[2] TTL in milliseconds
-- reply    1                    still mine, and prolonged
--          0                    gone: expired, deleted, or the node forgot
--          {pttl, holder}       another's
--          error WRONGTYPE      the key is not a string
--
-- Atomic, because between a GET and a PEXPIRE the key may expire and become
-- another's, whose TTL we would then set. A missing key is only reported, never
-- made again here: the caller must know which nodes were filled up anew, since
-- those say nothing about the time in between.
local holder = redis.call('GET', KEYS[1])
if holder == ARGV[1] then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return 1
end
if not holder then
  return 0
end
return {redis.call('PTTL', KEYS[1]), holder}
