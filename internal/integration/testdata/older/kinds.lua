-- kinds: what the scripts have in common that deal with who holds a lock, and how. It
-- is put before each of them, but join.
--
-- A lock is one or several keys, each of which is held in a way of its own:
--
--   x  alone
--   s  shared
--   l  one slot of several is held, and which one says
--   o  the slot, which is a key of its own, held alone
--   w  somebody holds what lies below it alone, or a slot of it
--   r  somebody holds what lies below it shared
--
-- What is held alone is a string, the token, as other Redlock clients have it. The rest
-- are sorted sets, which are in the way of their SET NX as well: a member for each
-- token. The score is until when it counts, in milliseconds of the node's time; each
-- way has a range of scores, so that who is in the way is one look, however many
-- there are. The set itself lives as long as the last of them.
--
-- The scripts get the ways as a word with a letter for each key.

-- clock is the node's time, in microseconds. It is asked once in a script, and only by
-- those who need it: it costs as much as four other commands.
local now
local function clock()
  if not now then
    local time = redis.call('TIME')
    now = time[1] * 1000000 + time[2]
  end
  return now
end

-- looking defines what there is to look with at keys that are there, which is mostly none,
-- and then to define it would cost as much as the commands: bars has for each way to hold a
-- key those that it does not go together with; range is where the scores begin of those who
-- are in a set.
local bars, range, holder, counter
local function looking()
  if bars then
    return
  end
  bars = {x = 'xslwr', o = 'xslwr', s = 'xlw', l = 'xswr', w = 'xsl', r = 'xl'}
  range = {s = 0, l = 1e13, w = 2e13, r = 3e13}

  -- millis is the node's time in whole milliseconds, by which Redis expires keys.
  local function millis()
    return math.floor(clock() / 1000)
  end

  -- span is where the scores are of all who are in the way, where their ranges lie together.
  local span = {s = {1e13, 3e13}, w = {0, 2e13}, r = {1e13, 2e13}}

  -- other gives who has a key alone, or whatever else keeps it from being a set that we
  -- know: the error to be returned.
  local function other(key, token)
    local value = redis.pcall('GET', key)
    if type(value) ~= 'string' then
      return value or nil
    elseif value == token then
      return true
    end
    return value, redis.call('PTTL', key)
  end

  -- holder gives who is in the way of holding a key like this, and for how many
  -- milliseconds yet; true if the token is there itself; nil if it is free; and an error
  -- to be returned if it is no lock. Third, how long a set has to live that is there.
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
    elseif left == -1 then
      return redis.error_reply('WRONGTYPE ' .. key .. ' is a set without a TTL, and no lock')
    end
    if score then
      local deadline = score - range[way]
      if deadline >= millis() and deadline < 1e13 then
        return true, nil, left
      end
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

  -- counter gives the name of the one that has the number of whoever holds a key like
  -- this: its own, or that of what lies below it.
  counter = function(key, way)
    if way == 'w' or way == 'r' then
      return key .. ':below'
    end
    return key .. ':fence'
  end
end

-- hold has a token at a key from now on for its TTL, in milliseconds, which is the same for
-- all keys: so its deadline is made text once, and not by each command; the ranges differ in
-- the digit before it. Of a set that has so long to live (nil: it is not there), those are
-- dropped who do not count any more, unless it is known that there are none (fresh): their
-- scores are strictly below now. A set that is new and held like the one before is the same
-- as that, TTL and all, and a copy of it; a server that has no COPY (before Redis 6.2), or
-- does not let us, makes each.
local deadline, like, likeWay
local function hold(key, way, token, ttl, left, fresh)
  if way == 'x' or way == 'o' then
    redis.call('SET', key, token, 'PX', ttl)
    return
  end
  if way == likeWay and redis.pcall('COPY', like, key) == 1 then
    return
  end
  local digit = way == 'w' and '2' or way == 'r' and '3' or way == 'l' and '1' or '0'
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
