-- yield: delete the lock if it is still mine, and wait for it again.
--
-- KEYS[1]  the lock
-- KEYS[2]  its queue, the first of which is woken
-- ARGV[1]  token
-- ARGV[2]  ticket, ARGV[3] the waiter, ARGV[4] his lease in milliseconds, ARGV[5] what
--          he is called
-- ARGV[6]  the node's time, in microseconds, after which he does not wait any more
-- reply    as release.lua
--
-- Atomic, because he has come before others: an attempt that was granted here, and came
-- to nothing elsewhere, must not cost him the place which the grant made an end of, or
-- those behind him could have one node after another while he tries.
local holder = redis.call('GET', KEYS[1])
if holder == ARGV[1] then
  local time = redis.call('TIME')
  local now = time[1] * 1000000 + time[2]
  redis.call('DEL', KEYS[1])
  if now <= ARGV[6] + 0 then
    enter(KEYS[2], ARGV[3], ARGV[2], now, ARGV[4], ARGV[5])
  end
  wake(KEYS[2], now)
  return 1
end
if not holder then
  return 0
end
return {redis.call('PTTL', KEYS[1]), holder}
