-- acquire, the usual case: one key that is wanted alone, is free, and nobody waits; nothing
-- below it has been locked for a day, and the number that is proposed will do. It is put
-- before the rest of acquire, which finds out all else, and does the same at half the cost.
if ARGV[10] == 'x' then
  local key = KEYS[1]
  local fence = key .. ':fence'
  if redis.call('EXISTS', key, key .. ':queue') == 0 then
    local time = redis.call('TIME')
    local now = time[1] * 1000000 + time[2]
    local found = redis.call('MGET', fence, key .. ':below', KEYS[2] or key)
    local count, latest, proposed = found[1] and tonumber(found[1]) or 0, ARGV[4] + 0, ARGV[3] + 0
    if (latest == 0 or now <= latest) and (not KEYS[2] or found[3] == ARGV[5]) and not found[2]
      and proposed > count and math.abs(proposed - now) <= 500000 then
      local stored = true
      if count > 0 and proposed ~= count + 1 and proposed % 3600000000 > proposed - count then
        redis.call('INCRBY', fence, proposed - count)
      else
        stored = redis.call('SET', fence, proposed, 'PX', 90000000, count > 0 and 'XX' or 'NX')
      end
      if stored then
        redis.call('SET', key, ARGV[1], 'PX', ARGV[2])
        return now
      end
    end
  end
end
