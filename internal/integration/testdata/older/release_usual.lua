-- release, the usual cases: one key that is held alone or shared, and nobody waits; or it is
-- held alone, and the first of those who wait is alive and wants it alone: he is handed the
-- lock, or told. It is put before the rest of release, which does the same for all but that.
--
-- Handed the lock, the waiter has it here from the same instant on, with a token that is of
-- his last attempt (WAITER.TRY), so that no late copy of an older release can take it away,
-- and with a number of its own, as if he had asked (acquire.lua). He is sent
--
--   WAITER TRY NUMBER SECONDS MICROSECONDS MARKER
--
-- with the node's time and marker, by which he judges the node as by a reply: the script is
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
    if not waits then
      redis.call('DEL', key)
      return 1
    end
    -- Who is alive is as line has it, and who is told as wake (queue.lua).
    local first = redis.pcall('ZRANGE', queue, '0', '0')[1] or ''
    local waiter, process, deadline, try = string.match(first, '^((%S+)%.%d+) (%d+) x(%d+) ')
    if waiter and string.sub(ARGV[1], 1, #waiter + 1) == waiter .. '.' then
      redis.call('ZREM', queue, first) -- he has had it, and will not wait again: it is an old request's, which came late
    elseif waiter then
      local time = redis.call('TIME')
      local rest = math.ceil(deadline - time[1] * 1000 - time[2] / 1000)
      if rest > 0 and rest <= 3000 then
        local channel, token, proposed = 'redlock:wake:' .. process, waiter .. '.' .. try, ARGV[4] + 0
        local found = try ~= '0' and proposed > 0 and redis.call('MGET', key .. ':fence', key .. ':below', 'redlock:node')
        local count = found and not found[2] and tonumber(found[1] or 0)
        if count then
          local now, number, stored = time[1] * 1000000 + time[2], ARGV[4], nil
          if proposed <= count or math.abs(proposed - now) > 500000 then
            proposed = math.max(math.min(math.max(proposed, now - 500000), now + 500000), count + 1)
            number = string.format('%.0f', proposed)
          end
          if count > 0 and proposed ~= count + 1 and proposed % 3600000000 > proposed - count then
            stored = type(redis.pcall('INCRBY', key .. ':fence', proposed - count)) == 'number'
          else
            -- NX: whatever is no string is no counter.
            stored = redis.pcall('SET', key .. ':fence', number, 'PX', '90000000', count > 0 and 'XX' or 'NX')
            stored = stored and stored.ok
          end
          if stored then
            redis.call('SET', key, token, 'PX', rest)
            local heard = redis.pcall('PUBLISH', channel, waiter .. ' ' .. try .. ' ' .. number .. ' ' .. time[1] .. ' ' .. time[2] .. ' ' .. (found[3] or ''))
            if type(heard) == 'number' and heard > 0 then
              redis.call('ZREM', queue, first)
            else
              redis.call('DEL', key)
            end
            return 1
          end
        end
        redis.call('DEL', key)
        redis.pcall('PUBLISH', channel, waiter)
        return 1
      end
    end
  end
end
