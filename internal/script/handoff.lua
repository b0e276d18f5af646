-- handoff, a part of release: the key is held exclusively by this token (release_usual.lua), and the
-- first waiter is alive and wants it exclusively. The script hands the lock to that waiter, or
-- calls it. It is put before the rest of release, which does everything else.
--
-- A waiter that is handed the lock holds it at this node from the same instant on. Its token is
-- that of its last attempt (WAITER.TRY.NONCE), so that no late copy of an older release can take
-- the lock away. Its fence is its own, as if the waiter had asked (acquire.lua). ARGV[5] is the
-- key's bucket. The script sends the waiter
--
--   WAITER TRY.NONCE NUMBER SECONDS MICROSECONDS MARKER
--
-- The nonce is the one that the attempt left in the queue. Only a client that can read the queue
-- knows it; one that may only publish does not. A waiter without a nonce (queue.lua) is called.
-- Time and marker are the node's: the waiter judges the node by them as by a reply. The script is
-- for one server process, as acquire is. The only sign that the waiter is alive is its last
-- request. So it holds the lock for the rest of its lease, and not for a TTL: a dead waiter costs
-- its lease, as it did in the queue. If no subscriber gets the message, the lock is free.
if mine then
  local key, queue = KEYS[1], KEYS[1] .. $queueSuffix
  -- The test for a living waiter is that of line, and the call that of wake (queue.lua).
  local first = redis.pcall('ZRANGE', queue, '0', '0')[1] or ''
  local waiter, process, deadline, at = string.match(first, '^((%S+)%.%d+) (%d+) x%d+ ()')
  if waiter and string.sub(ARGV[1], 1, #waiter + 1) == waiter .. '.' then
    redis.pcall('ZREM', queue, first) -- this waiter has had the lock and waits no more: a late request left the entry
  elseif waiter then
    local time = redis.call('TIME')
    local rest = math.ceil(deadline - time[1] * 1000 - time[2] / 1000)
    if rest > 0 and rest <= $maxLease then
      local channel, proposed = $wakeChannel .. process, ARGV[4] + 0
      local try = string.match(first, '^%+([1-9]%d*%.%S+) ', at)
      local marks = try and proposed > 0 and redis.call('MGET', $marker)
      if marks then
        local own, below = redis.pcall('ZSCORE', $fences, ARGV[5]), redis.pcall('ZSCORE', $belows, ARGV[5])
        local now, number = time[1] * 1000000 + time[2], ARGV[4]
        local count, stored = math.max(tonumber(own or 0) or math.huge, tonumber(below or 0) or math.huge), nil
        if proposed <= count or math.abs(proposed - now) > $clamp then
          number = string.format('%.0f', math.max(math.min(math.max(proposed, now - $clamp), now + $clamp), count + 1))
        end
        if count < math.huge then
          stored = type(redis.pcall('ZADD', $fences, 'GT', number, ARGV[5])) == 'number'
        end
        if stored then
          local token = waiter .. '.' .. try
          redis.call('SET', key, token, 'PX', rest)
          local heard = redis.pcall('PUBLISH', channel, waiter .. ' ' .. try .. ' ' .. number .. ' ' .. time[1] .. ' ' .. time[2] .. ' ' .. (marks[1] or ''))
          if type(heard) == 'number' and heard > 0 then
            redis.pcall('ZREM', queue, first)
          elseif redis.pcall('DEL', key) ~= 1 then
            redis.call('SET', key, token, 'PXAT', '1')
          end
          return 1
        end
      end
      if redis.pcall('DEL', key) == 1 then
        redis.pcall('PUBLISH', channel, waiter)
        return 1
      end
    end
  end
end
