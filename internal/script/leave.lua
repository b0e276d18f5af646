-- leave: somebody does not wait any more.
--
-- KEYS[1]  the lock
-- KEYS[2]  its queue
-- ARGV[1]  the waiter, ARGV[2] his ticket
-- reply    1                    he was in the queue
--          0                    he was not
--          error WRONGTYPE      the queue is none
--
-- Atomic, because the lock may be free and waiting for him alone: then the next one
-- must be told, and nobody else would.
if not leave(KEYS[2], ARGV[1], ARGV[2]) then
  return 0
end
if redis.call('EXISTS', KEYS[1]) == 0 then
  local time = redis.call('TIME')
  wake(KEYS[2], time[1] * 1000000 + time[2])
end
return 1
