-- hold: how a token comes to a key. It is put before the scripts that acquire and extend, after kinds.

-- hold makes a token a holder of a key, in the mode way, from now on for its TTL, in milliseconds. left is for how many
-- milliseconds the key's set still lives (nil: it does not exist). From an existing set, hold drops the members that
-- have expired, whose scores are strictly below now, unless the caller knows that there are none (fresh). The TTL is
-- the same for all keys, so the deadline becomes text once; the ranges of the modes differ only in the digit before it.
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
