-- release: delete the lock if, and only if, it is still mine.
--
-- KEYS[1]  the lock
-- KEYS[2]  its queue, the first of which is woken
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
  redis.call('DEL', KEYS[1])
  if redis.call('EXISTS', KEYS[2]) == 1 then
    local time = redis.call('TIME')
    wake(KEYS[2], time[1] * 1000000 + time[2])
  end
  return 1
end
if not holder then
  return 0
end
return {redis.call('PTTL', KEYS[1]), holder}
