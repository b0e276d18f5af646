-- leave: somebody does not wait any more.
--
-- KEYS     of the lock
-- ARGV[1]  the waiter, ARGV[2] his ticket, ARGV[3] the ways to hold the keys
-- ARGV[4]  his last attempt that he can be handed the lock for; 0: he never can
-- reply    1                    he was in a queue, or had been handed the lock
--          0                    neither
--          error WRONGTYPE      a queue is none
--
-- Atomic, because the lock may be free and waiting for him alone: then the next one
-- must be told, and nobody else would. And he may be handed it at any moment: either that
-- comes first, and the lock is given back, or it never comes.
--
-- What he was handed for a later attempt stays: this request is an old one then, which
-- comes late, and he may count on that.
local left, queue = 0, queueing()
local handed = ARGV[4] ~= '0' and redis.pcall('GET', KEYS[1])
if type(handed) == 'string' and string.sub(handed, 1, #ARGV[1] + 1) == ARGV[1] .. '.' then
  if tonumber(string.match(handed, '^%d+', #ARGV[1] + 2) or math.huge) <= ARGV[4] + 0 then
    left = drop(KEYS[1], 'x', handed)
  end
end
for i = 1, #ARGV[3] do
  local key, way = KEYS[i], string.sub(ARGV[3], i, i)
  if way ~= 'o' and queue.leave(key .. ':queue', ARGV[1], ARGV[2]) or left == 1 then
    queue.wake(key, way)
    left = 1
  end
end
return left
