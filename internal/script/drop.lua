-- drop: how a token leaves a key. It is put before the scripts that acquire and release, after kinds.

-- drop removes a token from a key; a string (modes x and o) it deletes whatever its value is. It returns 1, 0 if the
-- token was not there, or an error. If an ACL denies DEL or ZREM, drop uses the command that set the token: the key
-- expires at once, and so does a set without other members.
local function drop(key, way, token)
  local gone
  if way == 'x' or way == 'o' then
    gone = redis.pcall('DEL', key)
    if type(gone) ~= 'number' and redis.pcall('SET', key, token, 'PXAT', '1').ok then
      return 1
    end
    return gone
  end
  gone = redis.pcall('ZREM', key, token)
  if type(gone) ~= 'number' and redis.pcall('ZADD', key, 'XX', 'CH', '1', token) == 1 then
    if redis.pcall('ZCOUNT', key, '-inf', '+inf') == 1 then
      redis.pcall('PEXPIRE', key, '0')
    end
    return 1
  end
  return gone
end
