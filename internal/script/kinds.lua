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

-- bars has, for each way to hold a key, those that it does not go together with.
local bars = {x = 'xslwr', o = 'xslwr', s = 'xlw', l = 'xswr', w = 'xsl', r = 'xl'}
local range = {s = 0, l = 1e13, w = 2e13, r = 3e13}

-- clock is the node's time, in microseconds, and millis in whole milliseconds, by which
-- Redis expires keys. It is asked once in a script, and only by those who need it: it
-- costs as much as four other commands.
local now
local function clock()
  if not now then
    local time = redis.call('TIME')
    now = time[1] * 1000000 + time[2]
  end
  return now
end
local function millis()
  return math.floor(clock() / 1000)
end

-- holder gives who is in the way of holding a key like this, and for how many
-- milliseconds yet; true if the token is there itself; nil if it is free; and an error
-- to be returned if it is no lock.
local function holder(key, way, token)
  local value = redis.pcall('GET', key)
  if not value then
    return nil
  end
  if type(value) == 'string' then
    if value == token then
      return true
    end
    return value, redis.call('PTTL', key)
  end
  if redis.call('PTTL', key) < 0 then
    return value
  end
  if range[way] then
    local score = redis.call('ZSCORE', key, token)
    local deadline = score and score - range[way] or 0
    if deadline >= millis() and deadline < 1e13 then
      return true
    end
  end
  for other in string.gmatch(bars[way], '[^x]') do
    local least = range[other] + millis()
    local last = redis.call('ZREVRANGEBYSCORE', key, range[other] + 9999999999999, least, 'WITHSCORES', 'LIMIT', 0, 1)
    if last[1] then
      return last[1], last[2] - least
    end
  end
end

-- hold has a token at a key from now on for its TTL, in milliseconds. Of a set, those who
-- do not count any more are dropped: their scores are strictly below now.
local function hold(key, way, token, ttl)
  if not range[way] then
    redis.call('SET', key, token, 'PX', ttl)
    return
  end
  local from, deadline = range[way], millis() + ttl
  redis.call('ZADD', key, from + deadline, token)
  redis.call('ZREMRANGEBYSCORE', key, from, '(' .. string.format('%.0f', from + millis()))
  if redis.call('PTTL', key) < ttl + 0 then
    redis.call('PEXPIREAT', key, deadline)
  end
end

-- counter gives the name of the one that has the number of whoever holds a key like
-- this: its own, or that of what lies below it.
local function counter(key, way)
  if way == 'l' or way == 'w' or way == 'r' then
    return key .. ':below'
  end
  return key .. ':fence'
end
