-- give: what the scripts that give a lock back have in common. It is put before them, after kinds, drop and queue.

-- giveBack deletes a token from the keys that it holds in the modes ways, calls the waiters that are next, and returns
-- the reply of release.lua. slot is the number of the lock's slot, or false. again (nil: none) puts a client that wants
-- to wait again into the queue: it is called before the waiters are, if a key was deleted. A token in a set is given
-- back even if its time is over: its holder goes by its own clock.
local function giveBack(ways, token, slot, again)
  local count, queues, dropped = 0, 0, {}
  for i = 1, #ways do
    local key, way = KEYS[i], string.sub(ways, i, i)
    dropped[i] = ((way ~= 'x' and way ~= 'o') or redis.pcall('GETRANGE', key, '0', $lastOfToken) == token) and drop(key, way, token)
    if dropped[i] == 1 then
      count, queues = count + 1, queues + redis.call('EXISTS', key .. $queueSuffix)
    end
  end
  if again and count > 0 then
    again()
  end
  if queues > 0 or again and count > 0 then
    local wake = queueing().wake
    for i = 1, #ways do
      local way = string.sub(ways, i, i)
      if dropped[i] == 1 and way ~= 'o' then
        wake(KEYS[i], way, slot, way == 'x') -- a key that was held exclusively is free now
      end
    end
  end
  if count == #ways then
    return 1
  end
  local who, rest
  for i = 1, #ways do
    local has, left = false, nil
    if dropped[i] ~= 1 then
      has, left = holder(KEYS[i], string.sub(ways, i, i), token)
    end
    if has == true then
      return dropped[i] -- the server takes no writes
    elseif has then
      who, rest = has, left
    end
  end
  if type(who) == 'table' then
    return who
  elseif who then
    return {rest, who}
  end
  return 0
end
