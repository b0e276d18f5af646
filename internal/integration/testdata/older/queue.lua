-- queue: what the scripts have in common that deal with those who wait. It is put
-- before each of them, after kinds.
--
-- The queue of a key is a sorted set. The score is the ticket, the waiter's time of
-- arrival in microseconds, which is the same at all nodes; the member is the waiter,
-- until when he counts (the node's time, in milliseconds), how he wants to hold the
-- key, and what he is called:
--
--   PROCESS.N DEADLINE WAY OWNER
--
-- So the first is the lowest ticket, and of two that are the same the waiter whose
-- name comes first. Who has not asked again by his deadline is dead, or cannot reach
-- us: he is dropped when somebody comes across him, or with the whole queue. One whose
-- deadline is further away than any lease is from before the clock was set back: he
-- will be here again soon if he lives.
--
-- Whoever waits for a lock with several keys is in the queue of each. Nobody waits for
-- a certain slot (o), but for the lock that it is one of.

-- queueing gives what there is to do with a queue, which is mostly not there: so it is
-- only defined when it is wanted.
local function queueing()
  looking()

  -- clash reports whether who wants to hold a key one way has to wait for an earlier one
  -- who wants to hold it another way. Those who want slots do, since there may be one only.
  local function clash(one, other)
    return string.find(bars[one], other, 1, true) or one == 'l' and other == 'l'
  end

  -- line goes through a queue in its order, of those who are alive: member, ticket,
  -- waiter, the way, and how many milliseconds his lease has yet.
  local function line(queue)
    local at = 0
    return function()
      local entry = redis.call('ZRANGE', queue, at, at, 'WITHSCORES')
      while entry[1] do
        local waiter, deadline, way = string.match(entry[1], '^(%S+) (%d+) (%l)%d+ ')
        local rest = waiter and math.ceil(deadline - clock() / 1000) or 0
        if rest > 0 and rest <= 3000 and bars[way] then
          at = at + 1
          return entry[1], entry[2] + 0, waiter, way, rest
        end
        redis.call('ZREM', queue, entry[1])
        entry = redis.call('ZRANGE', queue, at, at, 'WITHSCORES')
      end
    end
  end

  -- ahead gives who waits for a key with a lower ticket than this waiter's (0: any is
  -- lower) and has to be let go first, and how many milliseconds his lease has yet; and
  -- whether the waiter himself is in the queue: his member.
  local function ahead(queue, way, waiter, ticket)
    for member, lower, who, his, rest in line(queue) do
      if who == waiter then
        return nil, nil, member
      elseif ticket > 0 and (ticket < lower or ticket == lower and waiter < who) then
        return nil
      elseif clash(way, his) then
        return who, rest
      end
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

  -- enter has a waiter in the queues of all keys for his lease from now on. That a node
  -- cannot note him down (it is full, or takes no writes) is no reason not to answer.
  local function enter(ways, waiter, ticket, lease, owner, try)
    local deadline = string.format('%.0f', math.floor(clock() / 1000) + lease)
    for i = 1, #ways do
      local key, way = KEYS[i], string.sub(ways, i, i)
      if way ~= 'o' then
        local queue = key .. ':queue'
        leave(queue, waiter, ticket)
        redis.pcall('ZADD', queue, ticket, waiter .. ' ' .. deadline .. ' ' .. way .. try .. ' ' .. owner)
        redis.pcall('PEXPIRE', queue, '60000')
      end
    end
  end

  -- wake tells those in the queue of a key, and nobody else, whose turn it is and who could
  -- not hold it as long as it was held, or waited for, the way that has ended now: the first,
  -- and those behind him who can hold it together with all before them. Who waits for a slot
  -- is told which one is free. Where it is known that nobody holds it, nobody looks. A server
  -- that will not let us publish (ACL) still gives back what it is asked to.
  local function wake(key, way, slot, free)
    local before = ''
    for _, _, waiter, his in line(key .. ':queue') do
      local turn = clash(his, way)
      for other in string.gmatch(before, '.') do
        turn = turn and not clash(his, other)
      end
      if turn and (free or not holder(key, his, '')) then
        local message = waiter
        if slot and his == 'l' then
          message = waiter .. ' ' .. slot
        end
        redis.pcall('PUBLISH', 'redlock:wake:' .. string.match(waiter, '^(.*)%.'), message)
      end
      if his == 'x' or his == 'l' then
        return
      end
      if not string.find(before, his, 1, true) then
        before = before .. his
      end
    end
  end

  return {ahead = ahead, leave = leave, enter = enter, wake = wake}
end
