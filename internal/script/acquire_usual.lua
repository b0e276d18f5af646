-- acquire, the usual cases: one key that is wanted alone or shared, no number that is
-- ahead of the time, and no client from before there were buckets. It is free, and nobody waits, or who wants it is the first; or others
-- share it, and nobody waits; or another has it alone. This is put before the rest of
-- acquire, which finds out all else, and does the same at half the cost.
local way = ARGV[10]
if way == 'x' or way == 's' then
  local key, ticket = KEYS[1], ARGV[6] + 0
  local queue = key .. ':queue'
  -- Mostly nothing is there, or the key alone (4). Else the second look says what: 1: somebody
  -- waits; 2 or 3: it is held; and what the first has seen beyond that is a table of what lies
  -- below folders, or clients from before there were buckets.
  local there, odd = redis.call('EXISTS', key, key, key, key, queue, 'redlock:below', 'redlock:node'), false
  if there == 4 then
    there = 2
  elseif there > 0 then
    odd, there = there, redis.call('EXISTS', key, key, queue)
    odd = odd > (there > 1 and there + 2 or there)
  end
  local time = redis.call('TIME')
  local now, latest = time[1] * 1000000 + time[2], ARGV[4] + 0
  if latest > 0 and now > latest then
    return {now, redis.call('GET', 'redlock:marker') or ''}
  end
  local first, left, free = nil, nil, there == 0
  if there == 1 then
    first = redis.call('ZRANGE', queue, '0', '0')[1]
    free = way == 'x' and string.sub(first, 1, #ARGV[7] + 1) == ARGV[7] .. ' '
  elseif there > 1 and way == 'x' then
    local holder = redis.pcall('GET', key)
    if type(holder) == 'string' and ticket > 0 and ARGV[12] ~= '0' and string.sub(holder, 1, #ARGV[7] + 1) == ARGV[7] .. '.' then
      free = tonumber(string.match(holder, '^%d+', #ARGV[7] + 2) or ARGV[12]) < ARGV[12] + 0 -- it was handed to him
    elseif type(holder) == 'string' and holder ~= ARGV[1] then
      if ticket > 0 then -- he is put in the queue as enter does (queue.lua)
        local waiter = ARGV[7] .. ' '
        for _, member in ipairs(there == 3 and redis.call('ZRANGEBYSCORE', queue, ARGV[6], ARGV[6]) or {}) do
          if string.sub(member, 1, #waiter) == waiter then
            redis.call('ZREM', queue, member)
          end
        end
        local deadline = string.format('%.0f', math.floor(now / 1000) + ARGV[8])
        redis.pcall('ZADD', queue, ARGV[6], waiter .. deadline .. ' x0 +' .. ARGV[12] .. '.' .. ARGV[1] .. ' ' .. ARGV[9])
        redis.pcall('PEXPIRE', queue, '60000')
      end
      return {redis.call('PTTL', key), holder, now}
    end
  elseif there == 2 then
    -- Nobody has a slot, or something below it alone (the ranges of kinds.lua), and this
    -- is no copy.
    free = redis.pcall('ZCOUNT', key, '1e13', '3e13') == 0 and not redis.call('ZSCORE', key, ARGV[1])
    left = free and redis.call('PTTL', key)
    free = free and left > 0
  end
  if odd and free and redis.call('EXISTS', 'redlock:node') == 1 then
    free = false
  end
  if free and (ARGV[5] == '' or redis.call('GET', 'redlock:marker') == ARGV[5]) then
    local number, proposed, stored = ARGV[3] + 0, ARGV[3] + 0, false
    local below = odd and redis.call('ZSCORE', 'redlock:below', ARGV[13])
    if way == 's' then
      number = tonumber(redis.call('ZSCORE', 'redlock:fence', ARGV[13]) or 0)
      stored = number > 0 and number >= proposed and (not below or below + 0 <= number)
    elseif math.abs(number - now) <= 500000 and (not below or below + 0 < number) then
      stored = redis.call('ZADD', 'redlock:fence', 'GT', 'CH', ARGV[3], ARGV[13]) == 1
    end
    if stored then
      if way == 'x' then
        redis.call('SET', key, ARGV[1], 'PX', ARGV[2])
      else
        local ms = math.floor(now / 1000)
        redis.call('ZADD', key, ms + ARGV[2], ARGV[1])
        if left then
          redis.pcall('ZREMRANGEBYSCORE', key, '0', '(' .. string.format('%.0f', ms))
        end
        if not left or left < ARGV[2] + 0 then
          local lives = redis.pcall('PEXPIREAT', key, ms + ARGV[2])
          if type(lives) ~= 'number' then -- it is for ever, and nobody knows of it
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
