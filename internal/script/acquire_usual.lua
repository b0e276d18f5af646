-- acquire, the usual cases: one key, wanted exclusively or shared; and no counter is ahead of the
-- time. The key is free and its queue is empty, or this client is the first in it; or the key is
-- shared and its queue is empty; or another token holds it exclusively. This code is put before the
-- rest of acquire, which handles all other cases. For these it does the same as the rest, at half the
-- cost.
--
-- The cost is in the number of commands, and in numbers made text: a server does that for every
-- score that it returns, and for every number that the script passes instead of text.
local way = ARGV[9]
if way == 'x' or way == 's' then
  local key, ticket = KEYS[1], ARGV[6] + 0
  local queue = key .. $queueSuffix
  -- 1: the queue exists; 2 or 3: the key does. 4 more: the table of what lies below folders exists.
  -- A shared lock reads that table in any case.
  local there, tree = nil, true
  if way == 's' then
    there = redis.call('EXISTS', key, key, queue)
  else
    there = redis.call('EXISTS', key, key, queue, $belows, $belows, $belows, $belows)
    tree = there > 3
    there = there % 4
  end
  local time = redis.call('TIME')
  local now, latest = time[1] * 1000000 + time[2], ARGV[4] + 0
  if latest > 0 and now > latest then
    return {now, redis.call('MGET', $marker)[1] or ''}
  end
  local first, left, free = nil, nil, there == 0
  if there == 1 then
    first = redis.pcall('ZRANGE', queue, '0', '0')[1]
    free = way == 'x' and first and string.sub(first, 1, #ARGV[7] + 1) == ARGV[7] .. ' '
  elseif there > 1 and way == 'x' then
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
  elseif there == 2 then
    -- No slot is held, and nothing below the key exclusively (the ranges of kinds.lua).
    free = redis.pcall('ZCOUNT', key, '$rangeL', '$rangeR') == 0
    left = free and redis.call('PTTL', key)
    free = free and left > 0 and string.find(redis.call('ZRANGE', key, '0', '0')[1] or '', $signature)
  end
  if free and (ARGV[5] == '' or redis.call('MGET', $marker)[1] == ARGV[5]) then
    local ms, number, proposed, stored = math.floor(now / 1000), ARGV[3] + 0, ARGV[3] + 0, true
    local below = tonumber(tree and redis.call('ZSCORE', $belows, ARGV[11]) or 0)
    if way == 's' then
      number = tonumber(redis.call('ZSCORE', $fences, ARGV[11]) or 0)
      if number < proposed or number < below or number == 0 then
        local own = number
        number = math.max(math.min(proposed, now + $clamp), own, below, 1)
        stored = not (left and redis.call('ZSCORE', key, ARGV[1]))
        if stored and own < number then
          redis.call('ZADD', $fences, 'GT', number == proposed and ARGV[3] or string.format('%.0f', number), ARGV[11])
        end
      end
      -- If the token is there, this is a copy, or its mark does not count any more.
      stored = stored and redis.call('ZADD', key, 'NX', string.format('%.0f', ms + ARGV[2]), ARGV[1]) == 1
    else
      stored = math.abs(number - now) <= $clamp and below < number and redis.call('ZADD', $fences, 'GT', 'CH', ARGV[3], ARGV[11]) == 1
    end
    if stored then
      if way == 'x' then
        redis.call('SET', key, ARGV[1], 'PX', ARGV[2])
      else
        if left then
          redis.pcall('ZREMRANGEBYSCORE', key, '0', '(' .. ms)
        end
        if not left or left < ARGV[2] + 0 then
          local lives = redis.pcall('PEXPIRE', key, ARGV[2])
          if type(lives) ~= 'number' then -- the set has no TTL, and no client knows of it
            redis.pcall('ZREM', key, ARGV[1])
            return lives
          end
        end
      end
      if first then
        redis.pcall('ZREM', queue, first)
      end
      if number == proposed then
        return now
      end
      return {number, now}
    end
  end
end
