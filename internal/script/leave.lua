-- leave: take a waiter out of the queues of a lock.
--
-- KEYS     of the lock
-- ARGV[1]  the waiter, ARGV[2] its ticket, ARGV[3] the lock modes of the keys
-- reply    1                    it was in a queue
--          0                    it was in none
-- Atomic, because the lock may be free and reserved for this waiter alone: then only this script calls the next one.
local left, queue = 0, queueing()
for i = 1, #ARGV[3] do
  local key, way = KEYS[i], string.sub(ARGV[3], i, i)
  if way ~= 'o' and queue.leave(key .. $queueSuffix, ARGV[1], ARGV[2]) then
    queue.wake(key, way)
    left = 1
  end
end
return left
