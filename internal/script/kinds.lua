-- kinds: the lock modes, and what scripts that read or change the holders of a key share. It is put before those.
--
-- A lock is one or several keys, each of which it holds in a mode of its own:
--
--   x  exclusive
--   s  shared
--   l  one of several slots of the key; the key after it says which
--   o  the slot itself, a key of its own that is held exclusively
--   w  intention exclusive: something below the key, or a slot of it, is held exclusively
--   r  intention shared: something below the key is held shared
--
-- A key that is held exclusively is a string, the token, as with other Redlock clients. A key in another mode is a
-- sorted set, which makes their SET NX fail as well. It has a member for each token. The score is the deadline until
-- which the member counts, in milliseconds of the node's time. Each mode has a range of scores, so one look finds a
-- conflicting holder, however many members there are. The set itself lives as long as the last of them.
--
-- The scripts get the modes (ways, in their code) as a string with a letter for each key.
--
-- A key that is no lock may have the name of one, and be large. It must cost nothing but its own name, and scripts
-- never change it. So they read no more of a value than a token can have, and take a set for one of locks, or for their
-- queue, only if its first member has the signature of this library's tokens (wire.Sign).

-- clock is the node's time, in microseconds. A script reads it once, if at all: TIME costs as much as four commands.
local now
local function clock()
  if not now then
    local time = redis.call('TIME')
    now = time[1] * 1000000 + time[2]
  end
  return now
end

-- clash reports whether two locks cannot hold a key in these modes at once.
local function clash(one, other)
  return string.find($conflicts, one .. other, 1, true)
end

-- holder looks for a token that conflicts with holding key in the mode way. It returns that token, and how long it
-- still conflicts; true if this token itself holds the key; nil if the key is free; an error reply, for the caller to
-- return, if the key is no lock. The third result is how long an existing set still lives. Times are in milliseconds.
local function holder(key, way, token)
  local at = string.find('$setModes', way, 1, true) -- of its range of scores, in a set
  local score = at and redis.pcall('ZSCORE', key, token)
  if not at or type(score) == 'table' then
    local value = redis.pcall('GETRANGE', key, '0', $lastOfToken)
    if type(value) ~= 'string' then
      if at then
        return value
      end
    elseif value == token and token ~= '' then
      return true
    else
      local left = redis.call('PTTL', key)
      if left == -2 then
        return nil
      end
      return value, left
    end
  end
  local first = redis.pcall('ZRANGE', key, '0', '0', 'WITHSCORES')
  if first.err then
    return first
  end
  local left, ms = redis.call('PTTL', key), math.floor(clock() / 1000) -- Redis expires keys by whole milliseconds
  if left == -2 then
    return nil
  end
  local rest = score and left > 0 and score - (at - 1) * $stride - ms
  if rest and rest >= 0 and rest < $stride - ms then
    return true, nil, left
  elseif left == -1 or not string.find(first[1], $signature) then
    return redis.error_reply('WRONGTYPE ' .. key .. ' is a set' .. (left == -1 and ' without a TTL' or '') .. ', and no lock')
  elseif (way == 'w' or way == 'r') and first[2] + 0 >= $rangeW or way == 's' and redis.call('ZCOUNT', key, '$rangeL', '($rangeR') == 0 then
    return nil, nil, left -- no mode that conflicts is in the set at all
  end
  for i = 1, #'$setModes' do
    if clash(way, string.sub('$setModes', i, i)) then
      local from = (i - 1) * $stride
      local last = redis.call('ZREVRANGEBYSCORE', key, from + $stride - 1, from + ms, 'WITHSCORES', 'LIMIT', '0', '1')
      if last[1] then
        return last[1], last[2] - from - ms, left
      end
    end
  end
  return nil, nil, left
end
