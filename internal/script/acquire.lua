-- acquire: take a lock for one token and number the grant, or say who has it and for
-- how long.
--
-- KEYS     of the lock, as many as there are ways
-- ARGV[1]  token, ARGV[2] TTL in milliseconds
-- ARGV[3]  the number that is proposed: the client's time in microseconds; by those who
--          hold it shared, what is above all that the node has lost
-- ARGV[4]  the node's time after which nobody wants the lock any more; 0: none
-- ARGV[5]  what the node's marker says if it has not forgotten; '': nobody asks for it
-- ARGV[6]  the waiter's ticket; 0: nobody will wait; -1: it is ours, whoever waits
-- ARGV[7]  the waiter, ARGV[8] his lease in milliseconds, ARGV[9] what he is called
-- ARGV[10] the ways to hold the keys, ARGV[11] how many slots there are; 0: none
-- ARGV[12] the attempt that he can be handed the lock for; 0: he cannot
-- ARGV[13] and on: the keys' buckets
-- reply    time                 granted, with the number that was proposed
--          {number, time}       granted with another one, or already mine
--          {pttl, holder, time} held by another; pttl -1: a key without a TTL
--          {pttl, holder, time, 0, slot}  the slot is; the other one is free, or none (0)
--          {rest, waiter, time, 0}  free, but another waits for it who came earlier;
--                               his lease has rest milliseconds yet
--          {marker, time}       not granted: the node forgot; '': it has no marker
--          {time, marker}       not granted: it came too late
--          error WRONGTYPE      a key is no lock, a counter no number, or a queue none
--
-- Times are the node's, in microseconds. The usual reply is a number and no list,
-- which costs the node a tenth of the whole call.
--
-- Atomic, because "who has it" must speak of the same instant as the refusal, because
-- all keys must be had or none, and because each number must belong to one grant: the
-- counters rise with every one. "Already mine" is a grant: the request may arrive
-- twice (a reply was lost and the connection made anew), and the second copy must not
-- read its own key as somebody else's. It touches neither the TTL, so a late copy
-- prolongs nothing, nor the counters, so it takes no number of its own.
--
-- The number is larger than those of all who have held alone what this lock takes in,
-- or what takes it in: a key's counter has the last number of those who held it, or a slot
-- of it, and another the largest of those who held something below it (counters.lua). Locks
-- that lie side by side share no counter that both read, unless it is one bucket, or each
-- would raise the other's number. Who holds it shared has the largest number there was; it
-- is stored with all that he holds, for the next who holds one of the keys alone may know
-- nothing of the others.
--
-- The number is the one proposed, which is the same at all nodes, as long as that
-- is more than the counters and within half a second of the node's time: the clock
-- of a client is not to be trusted, and a node that lost its counters must start
-- above all that it has handed out before. Who holds it shared proposes a number that is
-- above all that this node may have lost, and gets that if no counter says more.
--
-- Whoever was granted the lock finds his number, or more, in all buckets that it was stored
-- in. So that is what a copy of the request is told, and not the largest of all counters: in
-- those that were only read, another name may have stored more since, and that is not
-- stored as this lock's. Where a bucket is missing the node has lost its table since, and
-- "already mine" is no grant.
--
-- First come, first served: a lock that is free goes to nobody while somebody waits
-- for it whose ticket is lower. Who is refused is in the queue from the same instant on,
-- or the lock might be released between the two and he would not be told.
--
-- The counters are written before the lock: an error does not roll back, and a lock
-- that nobody knows of would stand for a TTL. So whatever may fail comes before it, or is
-- taken back, or does no harm (pcall): also what a user is not let do (ACL), for whom
-- "denied" means that the lock is not there.
local latest = ARGV[4] + 0
if latest > 0 and clock() > latest then
  return {clock(), redis.call('GET', 'redlock:marker') or ''}
end
local token, ticket = ARGV[1], ARGV[6] + 0

-- One look at all keys and queues, which are mostly not there. (The tables begin with room for
-- a path of five: one that grows from nothing costs as much as a command.)
local locks = #ARGV[10]
local looks, ways = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, {unpack(KEYS)}
for i = 1, locks do
  local key = KEYS[i]
  looks[i], looks[locks + i] = key, key .. ':queue'
  ways[i] = string.sub(ARGV[10], i, i)
end
local there = redis.call('EXISTS', unpack(looks, 1, 2 * locks))

-- What is there may be marks of others in the same folder that all count, and nothing else:
-- that is seen faster than who holds what. (The ranges of kinds.lua: nobody shares it, or has
-- a slot, and no mark is of before now.)
local left, before = {}, nil
for i = 1, there > 0 and locks or 0 do
  before = before or '(2' .. string.format('%013.0f', math.floor(clock() / 1000))
  if ways[i] == 'w' and redis.pcall('ZCOUNT', KEYS[i], '0', before) == 0 then
    local ttl = redis.call('PTTL', KEYS[i])
    if ttl > 0 then
      left[i], there = ttl, there - 1
    end
  end
end
local busy, mine = there > 0, 0
local refuse, another
if busy then
  looking()

  -- refuse has whoever wants to wait do so, and gives the reply.
  refuse = function(reply)
    if ticket > 0 then
      queueing().enter(ARGV[10], ARGV[7], ARGV[6], ARGV[8], ARGV[9], ARGV[12], token)
    end
    return reply
  end

  -- another gives a slot that is free; 0: there is none. They are numbered from 1.
  another = function(key)
    local slots = {}
    for i = 1, ARGV[11] + 0 do
      slots[i] = key .. ':slot:' .. i
    end
    for i, holds in ipairs(redis.call('MGET', unpack(slots))) do
      if not holds then
        return i
      end
    end
    return 0
  end
end
local handed = false
for i = 1, busy and locks or 0 do
  local who, rest, ttl = holder(KEYS[i], ways[i], token)
  if ticket > 0 and ARGV[12] ~= '0' and type(who) == 'string' and string.sub(who, 1, #ARGV[7] + 1) == ARGV[7] .. '.' then
    if tonumber(string.match(who, '^%d+', #ARGV[7] + 2) or ARGV[12]) >= ARGV[12] + 0 then
      return {rest, who, clock()}
    end
    handed, who = true, nil
  end
  left[i] = ttl
  if who == true then
    mine = mine + 1
  elseif type(who) == 'table' then
    return who
  elseif who and ways[i] == 'o' then
    return refuse({rest, who, clock(), 0, another(KEYS[i - 1])})
  elseif who then
    return refuse({rest, who, clock()})
  end
end

if mine == locks then
  local least = math.huge
  for i = 1, locks do
    least = math.min(least, redis.call('ZSCORE', tableOf(ways[i]), ARGV[12 + i]) or 0)
  end
  if least == 0 then
    return {'', clock()}
  end
  return {least, clock()}
end

local marks = redis.call('MGET', 'redlock:marker', 'redlock:node')
if ARGV[5] ~= '' and marks[1] ~= ARGV[5] then
  return {marks[1] or '', clock()}
end

local entries
if busy and ticket >= 0 and not handed then
  local ahead = queueing().ahead
  for i = 1, locks do
    if ways[i] ~= 'o' then
      local waiter, rest, member = ahead(looks[locks + i], ways[i], ARGV[7], ticket)
      if waiter then
        return refuse({rest, waiter, clock(), 0})
      elseif member then
        entries = entries or {}
        entries[i] = member
      end
    end
  end
end

-- Mostly it is one key that is wanted alone and the folders above it, and no number is ahead of
-- the time. Then neither the key's own counter is read, for the write says whether the number was
-- larger, nor those of the folders that are only raised: a server makes text of each score,
-- which costs as much as a command. If the write did nothing, nothing has been written.
local time, proposed, number = clock(), ARGV[3] + 0, nil
if not marks[2] and math.abs(proposed - time) <= 500000 and string.find(ARGV[10], '^w+x$') then
  local count = tonumber(redis.call('ZSCORE', 'redlock:below', ARGV[12 + locks]) or 0)
  local above, raised = redis.call('ZMSCORE', 'redlock:fence', unpack(ARGV, 13, 11 + locks)), {0, 0, 0, 0, 0, 0, 0, 0}
  for i = 1, locks - 1 do
    count = math.max(count, above[i] or 0)
    raised[2 * i - 1], raised[2 * i] = ARGV[3], ARGV[12 + i]
  end
  if count < proposed and redis.call('ZADD', 'redlock:fence', 'GT', 'CH', ARGV[3], ARGV[12 + locks]) == 1 then
    redis.call('ZADD', 'redlock:below', 'GT', unpack(raised, 1, 2 * locks - 2))
    number = proposed
  end
end
-- Else all is read that counts: the counters of the keys, and of what lies below those that are
-- wanted alone, shared, or for a slot. What is read is text, and serves again as that of the
-- number.
if not number then
  local has = redis.call('ZMSCORE', 'redlock:fence', unpack(ARGV, 13, 12 + locks))
  local count, alone, text, theirs = 0, false, nil, nil
  for i = 1, locks do
    local way, own = ways[i], has[i] or 0
    has[i] = own + 0
    if has[i] > count then
      count, text = has[i], own
    end
    if way ~= 'w' and way ~= 'r' then
      alone = alone or way == 'x' or way == 'o'
      local below = redis.call('ZSCORE', 'redlock:below', ARGV[12 + i])
      if below and below + 0 > count then
        count, text = below + 0, below
      end
    end
  end
  if marks[2] then
    olders()
    theirs = {}
    for i = 1, locks do
      local own, below = older(KEYS[i], 'x'), older(KEYS[i], 'w')
      theirs[i] = below
      if ways[i] ~= 'w' and ways[i] ~= 'r' then
        theirs[i], count = own, math.max(count, below)
      end
      count = math.max(count, own)
    end
  end
  number = math.max(math.min(proposed, time + 500000), count, 1)
  if alone then
    number = math.max(math.min(math.max(proposed, time - 500000), time + 500000), count + 1)
  end
  if number == proposed then
    text = ARGV[3]
  elseif not text or number ~= text + 0 then
    text = string.format('%.0f', number)
  end
  local fences, belows = {'redlock:fence', 'GT'}, {'redlock:below', 'GT'}
  for i = 1, locks do
    local way = ways[i]
    if way == 'w' or way == 'r' then
      belows[#belows + 1], belows[#belows + 2] = text, ARGV[12 + i]
    elseif has[i] < number then
      fences[#fences + 1], fences[#fences + 2] = text, ARGV[12 + i]
    end
    local wrong = theirs and theirs[i] < number and tell(KEYS[i], way, text, theirs[i])
    if wrong then
      return wrong
    end
  end
  if fences[3] then
    redis.call('ZADD', unpack(fences))
  end
  if belows[3] then
    redis.call('ZADD', unpack(belows))
  end
end
local held, why = pcall(function()
  for i = 1, locks do
    hold(KEYS[i], ways[i], token, ARGV[2], left[i], not busy)
  end
end)
if not held then -- all or none
  for i = 1, locks do
    drop(KEYS[i], ways[i], token)
  end
  return type(why) == 'table' and why or redis.error_reply(tostring(why))
end
if entries then
  for i, member in pairs(entries) do
    if redis.pcall('ZREM', looks[locks + i], member) == 1 then
      queueing().follow(looks[locks + i], ways[i])
    end
  end
end
if ARGV[11] ~= '0' and redis.call('EXISTS', looks[2 * locks - 1]) == 1 then
  local slot = another(KEYS[locks - 1])
  if slot > 0 then
    pcall(queueing().wake, KEYS[locks - 1], 'l', slot)
  end
end
if number == proposed then
  return clock()
end
return {number, clock()}
