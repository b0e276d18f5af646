-- release: delete the lock if, and only if, it is still mine.
--
-- KEYS[1]  the lock
-- ARGV[1]  token
-- reply    1                    deleted
--          0                    was not there any more
--          {pttl, holder}       another's, untouched
--          error WRONGTYPE      the key is not a string, untouched
--
-- Atomic, because between a GET and a DEL the key may expire and become
-- another's. The whole token is compared.
local holder = redis.call('GET', KEYS[1])
if holder == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
if not holder then
  return 0
end
return {redis.call('PTTL', KEYS[1]), holder}
