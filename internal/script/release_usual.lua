-- release, the usual cases: one key that is held alone or shared, and nobody waits; or it is
-- held alone, and the first of those who wait is alive and wants it alone: he is handed the
-- lock, or told. It is put before the rest of release, which does the same for all but that.
--
-- Handed the lock, the waiter has it here from the same instant on, with a token that is of
-- its last attempt (WAITER.TRY.NONCE), so that no late copy of an older release can take it
-- away, and with a number of its own, as if it had asked (acquire.lua). ARGV[5] is the key's
-- bucket. It is sent
--
--   WAITER TRY.NONCE NUMBER SECONDS MICROSECONDS MARKER
--
-- with the nonce that the attempt left in the queue, which the waiter alone knows and whoever
-- may only publish does not; a waiter without one (queue.lua) is told; and with the node's time and marker, by which he judges the node as by a reply: the script is
-- for one server process, as acquire is. Nobody knows whether he is alive but by what he has
-- said, so he has it for as long as that counts, his lease, and not for a TTL: whoever is
-- dead costs his lease, as he did in the queue. If he does not hear us at all, it is free.
if ARGV[2] == 'x' or ARGV[2] == 's' then
  local key, queue = KEYS[1], KEYS[1] .. ':queue'
  local waits = redis.call('EXISTS', queue) == 1
  if ARGV[2] == 's' then
    if not waits and redis.pcall('ZREM', key, ARGV[1]) == 1 then
      return 1
    end
  elseif redis.pcall('GET', key) == ARGV[1] then
    if not waits and redis.pcall('DEL', key) == 1 then
      return 1
    end
    -- Who is alive is as line has it, and who is told as wake (queue.lua).
    local first = redis.pcall('ZRANGE', queue, '0', '0')[1] or ''
    local waiter, process, deadline, at = string.match(first, '^((%S+)%.%d+) (%d+) x%d+ ()')
    if waiter and string.sub(ARGV[1], 1, #waiter + 1) == waiter .. '.' then
      redis.pcall('ZREM', queue, first) -- he has had it, and will not wait again: it is an old request's, which came late
    elseif waiter then
      local time = redis.call('TIME')
      local rest = math.ceil(deadline - time[1] * 1000 - time[2] / 1000)
      if rest > 0 and rest <= 3000 then
        local channel, proposed = 'redlock:wake:' .. process, ARGV[4] + 0
        local try = string.match(first, '^%+([1-9]%d*%.%S+) ', at)
        local marks = try and proposed > 0 and redis.call('MGET', 'redlock:marker', 'redlock:node')
        if marks and not marks[2] then -- else there are clients from before: it asks, and acquire counts for them, too
          local own, below = redis.pcall('ZSCORE', 'redlock:fence', ARGV[5]), redis.pcall('ZSCORE', 'redlock:below', ARGV[5])
          local now, number = time[1] * 1000000 + time[2], ARGV[4]
          local count, stored = math.max(tonumber(own or 0) or math.huge, tonumber(below or 0) or math.huge), nil
          if proposed <= count or math.abs(proposed - now) > 500000 then
            number = string.format('%.0f', math.max(math.min(math.max(proposed, now - 500000), now + 500000), count + 1))
          end
          if count < math.huge then
            stored = type(redis.pcall('ZADD', 'redlock:fence', 'GT', number, ARGV[5])) == 'number'
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
end
