-- acquire, the usual cases: one key that is wanted alone; it is held alone by another and
-- nobody will wait, or it is free and nobody waits, or the one who wants it is the first.
-- Nothing below it has been locked for a day, and the number that is proposed will do.
-- This is put before the rest of acquire, which finds out all else, and does the same at
-- half the cost.
if ARGV[10] == 'x' then
  local key, fence = KEYS[1], KEYS[1] .. ':fence'
  local queue = key .. ':queue'
  local there = redis.call('EXISTS', key, key, queue) -- 1: somebody waits; 2 or 3: it is held
  local time = redis.call('TIME')
  local now, latest = time[1] * 1000000 + time[2], ARGV[4] + 0
  if latest > 0 and now > latest then
    return {now}
  elseif there > 1 then
    local holder = redis.pcall('GET', key)
    if type(holder) == 'string' and holder ~= ARGV[1] and ARGV[6] + 0 <= 0 then
      return {redis.call('PTTL', key), holder, now}
    end
  else
    local first = there == 1 and redis.call('ZRANGE', queue, 0, 0)[1]
    local found = redis.call('MGET', fence, key .. ':below', KEYS[2] or key)
    local count, proposed = found[1] and tonumber(found[1]) or 0, ARGV[3] + 0
    if (not first or string.sub(first, 1, #ARGV[7] + 1) == ARGV[7] .. ' ')
      and (not KEYS[2] or found[3] == ARGV[5]) and not found[2]
      and proposed > count and math.abs(proposed - now) <= 500000 then
      local stored = true
      if count > 0 and proposed ~= count + 1 and proposed % 3600000000 > proposed - count then
        redis.call('INCRBY', fence, proposed - count)
      else
        stored = redis.call('SET', fence, proposed, 'PX', 90000000, count > 0 and 'XX' or 'NX')
      end
      if stored then
        redis.call('SET', key, ARGV[1], 'PX', ARGV[2])
        if first then
          redis.call('ZREM', queue, first)
        end
        return now
      end
    end
  end
end
