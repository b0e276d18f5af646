-- queue: the waiters of a key. It is put before the scripts that use it, after kinds.
--
-- The queue of a key is a sorted set. The score is the ticket: the waiter's time of arrival in microseconds, which is
-- the same at all nodes. The member has the waiter's name, the deadline until which it counts (the node's time, in
-- milliseconds), the lock mode in which it wants the key, and the identity that is in the tokens of its attempts, from
-- the signature on (wire.Sign):
--
--   PROCESS.N DEADLINE MODE .@SINCE@TRACE@OWNER
--
-- The first waiter is the one with the lowest ticket; of two equal tickets, the one whose name comes first. A waiter
-- that has not asked again by its deadline is dead, or cannot reach this node. The next script that comes across its
-- entry drops it, or the whole queue expires. An entry whose deadline is further away than any lease is from before the
-- clock was set back: it is dropped as well, and a living waiter soon enters again.
--
-- A waiter for a lock with several keys is in the queue of each. No waiter waits for a certain slot (o): it waits for
-- the lock that the slot belongs to.
--
-- No script goes past a hundred living waiters (window), or each of n waiting readers would look at all waiters before
-- it. A waiter with as many before it is refused; each that gets the lock calls the new hundredth (follow).

-- queueing makes the functions below, and returns those for scripts: only when needed, since mostly there is no queue.
local function queueing()
  local window = $window

  -- behind reports whether a waiter that wants a key in one mode must wait for an earlier one that wants it in the
  -- other. Waiters for slots must, since only one may be free.
  local function behind(one, other)
    return clash(one, other) or one == 'l' and other == 'l'
  end

  -- read returns the content of a member that still counts: the waiter, its lock mode, and the rest of its lease in
  -- milliseconds; nothing if the member does not count.
  local function read(member)
    local waiter, deadline, way = string.match(member, '^(%S+%.%d+) (%d+) (%l) ')
    local rest = waiter and math.ceil(deadline - clock() / 1000) or 0
    if rest > 0 and rest <= $maxLease and clash('x', way) then
      return waiter, way, rest
    end
  end

  -- scan runs a command that reads a queue. Its result has no members if the key is another program's hash, say.
  local function scan(...)
    local found = redis.pcall(...)
    if found.err and not string.find(found.err, 'WRONGTYPE', 1, true) then
      return redis.call(...) -- the error ends the script
    end
    return found
  end

  -- line iterates over the living waiters of a queue in its order: member, ticket, waiter, lock mode, and the rest of
  -- the lease in milliseconds. It reads one member, then ten, then many at a time, and drops dead ones on the way.
  local function line(queue)
    local from, most, entries, at, dead = 0, 1, {}, 1, {}
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
          entries, at = scan('ZRANGE', queue, from, from + most - 1, 'WITHSCORES'), 1
          if most == 1 and not string.find(entries[1] or '', $signature) then
            return nil -- it is empty, or no queue
          end
          from, most = from + #entries / 2, most == 1 and 10 or window
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

  -- ahead returns the waiter that goes before this one, which wants the key of this queue in the mode way, and the rest
  -- of its lease in milliseconds: that waiter has a lower ticket (if this ticket is 0, any is lower) and a mode to wait
  -- for, or is the first of a whole window. If none does, and this waiter is in the queue, the third result is its
  -- member.
  local function ahead(queue, way, waiter, ticket)
    local count, first, left = 0, nil, nil
    for member, lower, who, mode, rest in line(queue) do
      if who == waiter then
        return nil, nil, member
      elseif ticket > 0 and (ticket < lower or ticket == lower and waiter < who) then
        return nil
      elseif behind(way, mode) then
        return who, rest
      end
      count, first, left = count + 1, first or who, left or rest
      if count == window then
        return first, left
      end
    end
  end

  -- leave removes the entry of the waiter with this name and ticket from a queue, and reports whether there was one.
  local function leave(queue, waiter, ticket)
    for _, member in ipairs(scan('ZRANGEBYSCORE', queue, ticket, ticket)) do
      if string.sub(member, 1, #waiter + 1) == waiter .. ' ' then
        return redis.call('ZREM', queue, member) > 0
      end
    end
    return false
  end

  -- enter puts a waiter into the queues of all keys, which it wants in the modes ways, for its lease, in milliseconds,
  -- from now on. If the node cannot store the entry (it is full, or takes no writes), there is no error; if it cannot
  -- remove the waiter's earlier one, the error ends the script. token is that of the attempt.
  local function enter(ways, waiter, ticket, lease, token)
    local deadline = string.format('%.0f', math.floor(clock() / 1000) + lease)
    local identity = string.match(token, '%.@.*') or ''
    for i = 1, #ways do
      local key, way = KEYS[i], string.sub(ways, i, i)
      if way ~= 'o' then
        local queue = key .. $queueSuffix
        local first = redis.pcall('ZRANGE', queue, '0', '0')
        if first[1] then
          leave(queue, waiter, ticket)
        end
        if not first.err and (not first[1] or string.find(first[1], $signature)) then -- otherwise it is no queue: the waiter asks with its heartbeat
          redis.pcall('ZADD', queue, ticket, waiter .. ' ' .. deadline .. ' ' .. way .. ' ' .. identity)
          redis.pcall('PEXPIRE', queue, '$queueTTL')
        end
      end
    end
  end

  -- call publishes a message for a waiter, which then tries again. If an ACL denies PUBLISH, there is no error, and the
  -- release that calls this still succeeds.
  local function call(waiter, message)
    redis.pcall('PUBLISH', $wakeChannel .. string.match(waiter, '^(.*)%.'), message)
  end

  -- wake calls the waiters of a key whose turn it is, and no others: those that could not have the key while it was
  -- held, or waited for, in the mode that has ended now (way). These are the first waiter, and the ones behind it that
  -- can hold the key together with all before them. A waiter for a slot is told which slot is free, if slot is given.
  -- If the caller knows that nobody holds the key (free), wake does not look for holders.
  local function wake(key, way, slot, free)
    local before, count, held = '', 0, {}
    for _, _, waiter, mode in line(key .. $queueSuffix) do
      local turn = behind(mode, way)
      for other in string.gmatch(before, '.') do
        turn = turn and not behind(mode, other)
      end
      if turn and not free and held[mode] == nil then
        held[mode] = holder(key, mode, '') or false
      end
      if turn and not held[mode] then
        call(waiter, slot and mode == 'l' and waiter .. ' ' .. slot or waiter)
      end
      count = count + 1
      if mode == 'x' or mode == 'l' or count == window then
        return
      end
      if not string.find(before, mode, 1, true) then
        before = before .. mode
      end
    end
  end

  -- follow calls the waiter that is now the last of the window, since one before it has got the key in the mode way and
  -- left the queue. If the two cannot share the key, it calls nobody.
  local function follow(queue, way)
    local waiter, mode = read(redis.call('ZRANGE', queue, window - 1, window - 1)[1] or '')
    if waiter and not behind(mode, way) then
      call(waiter, waiter)
    end
  end

  return {ahead = ahead, leave = leave, enter = enter, wake = wake, follow = follow}
end
