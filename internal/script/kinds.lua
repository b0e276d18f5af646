-- kinds: the lock modes, and what the scripts that read or change the holders of a key have
-- in common. It is put before each of them.
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
-- A key that is held exclusively is a string, the token, as with other Redlock clients. A
-- key in another mode is a sorted set, which makes their SET NX fail as well. It has a
-- member for each token. The score is the deadline until which the member counts, in
-- milliseconds of the node's time. Each mode has a range of scores, so that one look finds
-- a conflicting holder, however many members there are. The set itself lives as long as
-- the last of them.
--
-- The scripts get the modes (ways, in their code) as a string with a letter for each key.

-- What is no lock may have the key of one: some megabytes, or a sorted set. It costs nobody but its own
-- name, and is never changed. So no more of a value is read than a token can have, and a set is only
-- taken for one of locks, or for their queue, if its first member has the signature that is in each
-- token of this library (wire.Sign).

-- clock is the node's time, in microseconds. A script reads it once, and only if it needs
-- it: TIME costs as much as four other commands.
local now
local function clock()
  if not now then
    local time = redis.call('TIME')
    now = time[1] * 1000000 + time[2]
  end
  return now
end

-- looking defines the functions that look at keys which exist. Mostly none does, and then the
-- definitions would cost as much as the commands. bars has for each mode the modes that it
-- conflicts with; range has the score at which the range of each mode of a set begins.
local bars, range, holder
local function looking()
  if bars then
    return
  end
  bars = $conflicts
  range = {s = 0, l = $rangeL, w = $rangeW, r = $rangeR}

  -- millis is the node's time in whole milliseconds, by which Redis expires keys.
  local function millis()
    return math.floor(clock() / 1000)
  end

  -- span has the scores of all conflicting members, for modes whose conflicting ranges adjoin.
  local span = {s = {$rangeL, $rangeR}, w = {0, $rangeW}, r = {$rangeL, $rangeW}}

  -- other reads a key as a string: it gives true for the token itself, another token and its
  -- PTTL, nil if there is no key, or the error of GET if the key is no string.
  local function other(key, token)
    local value = redis.pcall('GETRANGE', key, '0', $lastOfToken)
    if type(value) ~= 'string' then
      return value
    elseif value == token and token ~= '' then
      return true
    end
    local left = redis.call('PTTL', key)
    if left == -2 then
      return nil
    end
    return value, left
  end

  -- holder gives the token that conflicts with holding the key in this mode, and for how
  -- many milliseconds it still does; true if the token itself is there; nil if the key is
  -- free; an error to return if the key is no lock. Third, how long an existing set still
  -- lives.
  holder = function(key, way, token)
    local score = false
    if range[way] then
      score = redis.pcall('ZSCORE', key, token)
      if type(score) == 'table' then
        return other(key, token)
      end
    else
      local who, rest = other(key, token)
      if type(who) ~= 'table' then
        return who, rest
      end
    end
    local left = redis.call('PTTL', key)
    if left == -2 then
      return nil
    end
    if score and left > 0 then
      local deadline = score - range[way]
      if deadline >= millis() and deadline < $stride then
        return true, nil, left
      end
    end
    local first = redis.pcall('ZRANGE', key, '0', '0')
    if first.err then
      return first
    elseif left == -1 or not string.find(first[1], $signature) then
      return redis.error_reply('WRONGTYPE ' .. key .. ' is a set' .. (left == -1 and ' without a TTL' or '') .. ', and no lock')
    end
    if span[way] and redis.call('ZCOUNT', key, span[way][1], '(' .. span[way][2]) == 0 then
      return nil, nil, left
    end
    for bar in string.gmatch(bars[way], '[^x]') do
      local last = redis.call('ZREVRANGEBYSCORE', key, range[bar] + 9999999999999, range[bar] + millis(), 'WITHSCORES', 'LIMIT', '0', '1')
      if last[1] then
        return last[1], last[2] - range[bar] - millis(), left
      end
    end
    return nil, nil, left
  end
end

-- hold makes a token a holder of a key from now on for its TTL, in milliseconds. The TTL is
-- the same for all keys, so the deadline is made text once and not for each command; the
-- ranges differ only in the digit before it. left is how long the set still lives (nil: it
-- does not exist). From an existing set, hold drops the members that have expired, whose
-- scores are strictly below now, unless it is known that there are none (fresh). A new set
-- in the mode of the one before is the same as that one, TTL included, and becomes a copy of
-- it. Where the server has no COPY (before Redis 6.2), or denies it, each set is made anew.
local deadline, like, likeWay
local function hold(key, way, token, ttl, left, fresh)
  if way == 'x' or way == 'o' then
    redis.call('SET', key, token, 'PX', ttl)
    return
  end
  if way == likeWay and redis.pcall('COPY', like, key) == 1 then
    return
  end
  local digit = way == 'w' and '$digitW' or way == 'r' and '$digitR' or way == 'l' and '$digitL' or '0'
  deadline = deadline or string.format('%013.0f', math.floor(clock() / 1000) + ttl)
  redis.call('ZADD', key, digit .. deadline, token)
  if left and not fresh then
    redis.call('ZREMRANGEBYSCORE', key, digit .. '0000000000000', '(' .. digit .. string.format('%013.0f', math.floor(clock() / 1000)))
  end
  if not left or left < ttl + 0 then
    redis.call('PEXPIRE', key, ttl)
  end
  if not left then
    like, likeWay = key, way
  end
end

-- drop removes a token from a key that it holds: 1 if it was there. If an ACL denies DEL or
-- ZREM, the command that set the token ends it: the key expires at once, and so does a set
-- without other members.
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
