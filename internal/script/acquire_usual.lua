-- acquire, the usual cases: one key, wanted exclusively, and no counter is ahead of the time. The key is free and its
-- queue is empty, or this client is the first in it; or another token holds the key exclusively. This code stands
-- before the rest of acquire, which handles all other cases. For these it does the same as the rest, at half the cost.
--
-- The cost is in the number of commands, and in turning numbers into text: a server does that for every score that it
-- returns, and for every number that the script passes to a command.
if ARGV[9] == 'x' then
  local key, ticket = KEYS[1], ARGV[6] + 0
  local queue = key .. $queueSuffix
  -- there is 1 if the queue exists, 2 or 3 if the key does; and 4 more if the table of what lies below folders exists.
  local there = redis.call('EXISTS', key, key, queue, $belows, $belows, $belows, $belows)
  local tree = there > 3
  there = there % 4
  local time = redis.call('TIME')
  local now, latest = time[1] * 1000000 + time[2], ARGV[4] + 0
  if latest > 0 and now > latest then
    return {now, redis.call('MGET', $marker)[1] or ''}
  end
  local first, free = nil, there == 0
  if there == 1 then
    first = redis.pcall('ZRANGE', queue, '0', '0')[1]
    free = first and string.sub(first, 1, #ARGV[7] + 1) == ARGV[7] .. ' '
  elseif there > 1 then
    local holder = redis.pcall('GETRANGE', key, '0', $lastOfToken)
    if type(holder) == 'string' and holder ~= ARGV[1] then
      if ticket > 0 and (there == 2 or string.find(redis.pcall('ZRANGE', queue, '0', '0')[1] or '', $signature)) then -- enter the queue, as enter does (queue.lua)
        local waiter = ARGV[7] .. ' '
        for _, member in ipairs(there == 3 and redis.call('ZRANGEBYSCORE', queue, ARGV[6], ARGV[6]) or {}) do
          if string.sub(member, 1, #waiter) == waiter then
            redis.call('ZREM', queue, member)
          end
        end
        local deadline = string.format('%.0f', math.floor(now / 1000) + ARGV[8])
        redis.pcall('ZADD', queue, ARGV[6], waiter .. deadline .. ' x ' .. (string.match(ARGV[1], '%.@.*') or ''))
        redis.pcall('PEXPIRE', queue, '$queueTTL')
      end
      return {redis.call('PTTL', key), holder, now}
    end
  end
  if free and (ARGV[5] == '' or redis.call('MGET', $marker)[1] == ARGV[5]) then
    local number = ARGV[3] + 0
    local below = tonumber(tree and redis.call('ZSCORE', $belows, ARGV[11]) or 0)
    if math.abs(number - now) <= $clamp and below < number and redis.call('ZADD', $fences, 'GT', 'CH', ARGV[3], ARGV[11]) == 1 then
      redis.call('SET', key, ARGV[1], 'PX', ARGV[2])
      if first then
        redis.pcall('ZREM', queue, first)
      end
      return now
    end
  end
end
