-- leave: somebody does not wait any more.
--
-- KEYS     of the lock
-- ARGV[1]  the waiter, ARGV[2] his ticket, ARGV[3] the ways to hold the keys
-- reply    1                    he was in a queue
--          0                    he was not
--          error WRONGTYPE      a queue is none
--
-- Atomic, because the lock may be free and waiting for him alone: then the next one
-- must be told, and nobody else would.
local left, queue = 0, queueing()
for i = 1, #ARGV[3] do
  local key, way = KEYS[i], string.sub(ARGV[3], i, i)
  if way ~= 'o' and queue.leave(key .. ':queue', ARGV[1], ARGV[2]) then
    queue.wake(key, way)
    left = 1
  end
end
return left
