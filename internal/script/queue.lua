-- queue: what the scripts have in common that deal with those who wait. It is put
-- before each of them, after kinds.
--
-- The queue of a key is a sorted set. The score is the ticket, the waiter's time of
-- arrival in microseconds, which is the same at all nodes; the member is the waiter,
-- until when it counts (the node's time, in milliseconds), how it wants to hold the key,
-- the attempt that it can be handed the lock for (0: none) with its nonce, and what it is
-- called:
--
--   PROCESS.N DEADLINE WAY0 +TRY.NONCE OWNER
--
-- The nonce is the token of that attempt. A waiter of an older version has none, and the
-- attempt in the place of the 0: it is called, and handed nothing. To the scripts of that
-- version the 0 says the same of everybody else.
--
-- So the first is the lowest ticket, and of two that are the same the waiter whose
-- name comes first. Who has not asked again by his deadline is dead, or cannot reach
-- us: he is dropped when somebody comes across him, or with the whole queue. One whose
-- deadline is further away than any lease is from before the clock was set back: he
-- will be here again soon if he lives.
--
-- Whoever waits for a lock with several keys is in the queue of each. Nobody waits for
-- a certain slot (o), but for the lock that it is one of.
--
-- No script goes past a hundred who are alive (window), or each of n readers who wait would
-- look at all that are before it. Who has as many before it is not let in, and each that is
-- let in calls the one that is the hundredth then (follow).

-- queueing gives what there is to do with a queue, which is mostly not there: so it is
-- only defined when it is wanted.
local function queueing()
  looking()
  local window = 100

  -- clash reports whether who wants to hold a key one way has to wait for an earlier one
  -- who wants to hold it another way. Those who want slots do, since there may be one only.
  local function clash(one, other)
    return string.find(bars[one], other, 1, true) or one == 'l' and other == 'l'
  end

  -- read gives what a member says, if that counts: the waiter, the way, and how many
  -- milliseconds the lease has yet.
  local function read(member)
    local waiter, deadline, way = string.match(member, '^(%S+%.%d+) (%d+) (%l)%d+ ')
    local rest = waiter and math.ceil(deadline - clock() / 1000) or 0
    if rest > 0 and rest <= 3000 and bars[way] then
      return waiter, way, rest
    end
  end

  -- line goes through a queue in its order, of those who are alive: member, ticket, waiter,
  -- the way, and how many milliseconds the lease has yet. It reads a few, and then many at a
  -- time, and drops the dead that it comes across.
  local function line(queue)
    local from, most, entries, at, dead = 0, 10, {}, 1, {}
    local function bury()
      if dead[1] then
        local gone = redis.pcall('ZREM', queue, unpack(dead))
        from, dead = from - (tonumber(gone) or 0), {}
      end
    end
    return function()
      repeat
        if at > #entries then
          bury()
          entries, at = redis.call('ZRANGE', queue, from, from + most - 1, 'WITHSCORES'), 1
          from, most = from + #entries / 2, window
        end
        local member, ticket = entries[at], entries[at + 1]
        at = at + 2
        local waiter, way, rest = read(member or '')
        if waiter then
          bury()
          return member, ticket + 0, waiter, way, rest
        end
        dead[#dead + 1] = member
      until not member
    end
  end

  -- ahead gives who waits for a key with a lower ticket than this waiter's (0: any is
  -- lower) and has to be let go first, and how many milliseconds his lease has yet; and
  -- whether the waiter himself is in the queue: his member.
  local function ahead(queue, way, waiter, ticket)
    local count, first, left = 0, nil, nil
    for member, lower, who, his, rest in line(queue) do
      if who == waiter then
        return nil, nil, member
      elseif ticket > 0 and (ticket < lower or ticket == lower and waiter < who) then
        return nil
      elseif clash(way, his) then
        return who, rest
      end
      count, first, left = count + 1, first or who, left or rest
      if count == window then
        return first, left
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
  local function enter(ways, waiter, ticket, lease, owner, try, nonce)
    local deadline = string.format('%.0f', math.floor(clock() / 1000) + lease)
    for i = 1, #ways do
      local key, way = KEYS[i], string.sub(ways, i, i)
      if way ~= 'o' then
        local queue = key .. ':queue'
        leave(queue, waiter, ticket)
        redis.pcall('ZADD', queue, ticket, waiter .. ' ' .. deadline .. ' ' .. way .. '0 +' .. try .. '.' .. nonce .. ' ' .. owner)
        redis.pcall('PEXPIRE', queue, '60000')
      end
    end
  end

  -- call has a waiter ask. A server that will not let us publish (ACL) still gives back what
  -- it is asked to.
  local function call(waiter, message)
    redis.pcall('PUBLISH', 'redlock:wake:' .. string.match(waiter, '^(.*)%.'), message)
  end

  -- wake tells those in the queue of a key, and nobody else, whose turn it is and who could
  -- not hold it as long as it was held, or waited for, the way that has ended now: the first,
  -- and those behind him who can hold it together with all before them. Who waits for a slot
  -- is told which one is free. Where it is known that nobody holds it, nobody looks.
  local function wake(key, way, slot, free)
    local before, count, held = '', 0, {}
    for _, _, waiter, his in line(key .. ':queue') do
      local turn = clash(his, way)
      for other in string.gmatch(before, '.') do
        turn = turn and not clash(his, other)
      end
      if turn and not free and held[his] == nil then
        held[his] = holder(key, his, '') or false
      end
      if turn and not held[his] then
        call(waiter, slot and his == 'l' and waiter .. ' ' .. slot or waiter)
      end
      count = count + 1
      if his == 'x' or his == 'l' or count == window then
        return
      end
      if not string.find(before, his, 1, true) then
        before = before .. his
      end
    end
  end

  -- follow calls the one that has come into the window of a queue, since one before it holds
  -- the key now, if they can both hold it.
  local function follow(queue, way)
    local waiter, his = read(redis.call('ZRANGE', queue, window - 1, window - 1)[1] or '')
    if waiter and not clash(his, way) then
      call(waiter, waiter)
    end
  end

  return {ahead = ahead, leave = leave, enter = enter, wake = wake, follow = follow}
end
