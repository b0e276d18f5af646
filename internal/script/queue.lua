-- queue: what the scripts have in common that deal with those who wait. It is put
-- before each of them.
--
-- The queue of a lock is a sorted set. The score is the ticket, the waiter's time of
-- arrival in microseconds, which is the same at all nodes; the member is the waiter,
-- until when he counts (the node's time, in milliseconds), and what he is called:
--
--   PROCESS.N DEADLINE OWNER
--
-- So the first is the lowest ticket, and of two that are the same the waiter whose
-- name comes first. Who has not asked again by his deadline is dead, or cannot reach
-- us: he is dropped when his turn comes, or with the whole queue. One whose deadline
-- is further away than any lease is from before the clock was set back: he will be
-- here again soon if he lives.

-- first gives the first of a queue who is alive, his ticket, and how many milliseconds
-- his lease has yet. Now is the node's time in microseconds.
local function first(queue, now)
  local head = redis.call('ZRANGE', queue, 0, 0, 'WITHSCORES')
  while head[1] do
    local waiter, deadline = string.match(head[1], '^(%S+) (%d+) ')
    local rest = waiter and math.ceil(deadline - now / 1000) or 0
    if rest > 0 and rest <= 3000 then
      return waiter, head[2] + 0, rest
    end
    redis.call('ZREM', queue, head[1])
    head = redis.call('ZRANGE', queue, 0, 0, 'WITHSCORES')
  end
end

-- leave takes a waiter out of a queue, and reports whether he was there.
local function leave(queue, waiter, ticket)
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', queue, ticket, ticket)) do
    if string.sub(member, 1, #waiter + 1) == waiter .. ' ' then
      return redis.call('ZREM', queue, member) > 0
    end
  end
  return false
end

-- enter has a waiter in a queue for his lease from now on. That a node cannot note him
-- down (it is full, or takes no writes) is no reason not to answer.
local function enter(queue, waiter, ticket, now, lease, owner)
  leave(queue, waiter, ticket)
  local deadline = string.format('%.0f', math.floor(now / 1000) + lease)
  redis.pcall('ZADD', queue, ticket, waiter .. ' ' .. deadline .. ' ' .. owner)
  redis.pcall('PEXPIRE', queue, 60000)
end

-- wake tells the first of a queue, and nobody else, that it is his turn. A server that
-- will not let us publish (ACL) still gives back what it is asked to.
local function wake(queue, now)
  local waiter = first(queue, now)
  if waiter then
    redis.pcall('PUBLISH', 'redlock:wake:' .. string.match(waiter, '^(.*)%.'), waiter)
  end
end

