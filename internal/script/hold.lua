-- hold: how a token comes to a key, for the scripts that acquire and extend. It is put before them, after kinds.

-- hold makes a token a holder of a key from now on for its TTL, in milliseconds. The TTL is
-- the same for all keys, so the deadline is made text once and not for each command; the
-- ranges differ only in the digit before it. left is how long the set still lives (nil: it
-- does not exist). From an existing set, hold drops the members that have expired, whose
-- scores are strictly below now, unless it is known that there are none (fresh).
local deadline
local function hold(key, way, token, ttl, left, fresh)
  local at = string.find('$setModes', way, 1, true)
  if not at then
    redis.call('SET', key, token, 'PX', ttl)
    return
  end
  local digit = at - 1 .. ''
  deadline = deadline or string.format('%013.0f', math.floor(clock() / 1000) + ttl)
  redis.call('ZADD', key, digit .. deadline, token)
  if left and not fresh then
    redis.call('ZREMRANGEBYSCORE', key, digit .. '0000000000000', '(' .. digit .. string.format('%013.0f', math.floor(clock() / 1000)))
  end
  if not left or left < ttl + 0 then
    redis.call('PEXPIRE', key, ttl)
  end
end
