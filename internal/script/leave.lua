-- leave: take a waiter out of the queues of a lock.
--
-- KEYS     of the lock
-- ARGV[1]  the waiter, ARGV[2] its ticket, ARGV[3] the lock modes of the keys
-- ARGV[4]  its last attempt that may have been handed the lock; 0: none may have
-- reply    1                    it was in a queue, or had been handed the lock
--          0                    neither
--
-- Atomic, because the lock may be free and reserved for this waiter alone: then the script
-- must call the next one, since nothing else would. And a release may hand the lock to this
-- waiter at any moment: either the hand-over comes first, and the lock is given back here,
-- or it never comes.
--
-- A hand-over to a later attempt stays: then this request is an old one that came late, and
-- the waiter may count on the later hand-over.
local left, queue = 0, queueing()
local handed = ARGV[4] ~= '0' and redis.pcall('GETRANGE', KEYS[1], '0', $lastOfToken)
if type(handed) == 'string' and string.sub(handed, 1, #ARGV[1] + 1) == ARGV[1] .. '.' then
  if tonumber(string.match(handed, '^%d+', #ARGV[1] + 2) or math.huge) <= ARGV[4] + 0 then
    left = drop(KEYS[1], 'x', handed)
  end
end
for i = 1, #ARGV[3] do
  local key, way = KEYS[i], string.sub(ARGV[3], i, i)
  if way ~= 'o' and queue.leave(key .. $queueSuffix, ARGV[1], ARGV[2]) or left == 1 then
    queue.wake(key, way)
    left = 1
  end
end
return left
