-- acquire, the usual cases: one key that is wanted alone or shared, and no number that is
-- ahead of the time. It is free, and nobody waits, or who wants it is the first; or others
-- share it, and nobody waits; or another has it alone. This is put before the rest of
-- acquire, which finds out all else, and does the same at half the cost.
local way = ARGV[10]
if way == 'x' or way == 's' then
  local key, fence, ticket = KEYS[1], KEYS[1] .. ':fence', ARGV[6] + 0
  local queue = key .. ':queue'
  local there = redis.call('EXISTS', key, key, queue) -- 1: somebody waits; 2 or 3: it is held
  local time = redis.call('TIME')
  local now, latest = time[1] * 1000000 + time[2], ARGV[4] + 0
  if latest > 0 and now > latest then
    return {now}
  end
  local first, left, free = nil, nil, there == 0
  if there == 1 then
    first = redis.call('ZRANGE', queue, '0', '0')[1]
    free = string.sub(first, 1, #ARGV[7] + 1) == ARGV[7] .. ' '
  elseif there > 1 and way == 'x' then
    local holder = redis.pcall('GET', key)
    if type(holder) == 'string' and ticket > 0 and ARGV[12] ~= '0' and string.sub(holder, 1, #ARGV[7] + 1) == ARGV[7] .. '.' then
      free = string.sub(holder, #ARGV[7] + 2) + 0 < ARGV[12] + 0 -- it was handed to him
    elseif type(holder) == 'string' and holder ~= ARGV[1] then
      if ticket > 0 then -- he is put in the queue as enter does (queue.lua)
        local waiter = ARGV[7] .. ' '
        for _, member in ipairs(there == 3 and redis.call('ZRANGEBYSCORE', queue, ARGV[6], ARGV[6]) or {}) do
          if string.sub(member, 1, #waiter) == waiter then
            redis.call('ZREM', queue, member)
          end
        end
        local deadline = string.format('%.0f', math.floor(now / 1000) + ARGV[8])
        redis.pcall('ZADD', queue, ARGV[6], waiter .. deadline .. ' x' .. ARGV[12] .. ' ' .. ARGV[9])
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
  local found = free and redis.call('MGET', fence, key .. ':below', KEYS[2] or key)
  if found and (not KEYS[2] or found[3] == ARGV[5]) and not found[2] then
    local count, proposed, stored = found[1] and tonumber(found[1]) or 0, ARGV[3] + 0, true
    if way == 's' then
      stored = count > 0 or not found[1]
    elseif proposed <= count or math.abs(proposed - now) > 500000 then
      stored = false
    elseif count > 0 and proposed ~= count + 1 and proposed % 3600000000 > proposed - count then
      redis.call('INCRBY', fence, proposed - count)
    else
      stored = redis.call('SET', fence, ARGV[3], 'PX', '90000000', count > 0 and 'XX' or 'NX')
    end
    if stored then
      if way == 'x' then
        redis.call('SET', key, ARGV[1], 'PX', ARGV[2])
      else
        local ms = math.floor(now / 1000)
        redis.call('ZADD', key, ms + ARGV[2], ARGV[1])
        if left then
          redis.call('ZREMRANGEBYSCORE', key, '0', '(' .. string.format('%.0f', ms))
        end
        if not left or left < ARGV[2] + 0 then
          redis.call('PEXPIREAT', key, ms + ARGV[2])
        end
      end
      if first then
        redis.call('ZREM', queue, first)
      end
      if way == 'x' or count == proposed then
        return now
      end
      return {count, now}
    end
  end
end
