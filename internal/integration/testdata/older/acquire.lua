-- acquire: take a lock for one token and number the grant, or say who has it and for
-- how long.
--
-- KEYS     of the lock, as many as there are ways; and one more, the node's marker, or
--          nobody asks whether the node forgot
-- ARGV[1]  token, ARGV[2] TTL in milliseconds
-- ARGV[3]  the number that is proposed: the client's time in microseconds
-- ARGV[4]  the node's time after which nobody wants the lock any more; 0: none
-- ARGV[5]  what the marker says if the node has not forgotten
-- ARGV[6]  the waiter's ticket; 0: nobody will wait; -1: it is ours, whoever waits
-- ARGV[7]  the waiter, ARGV[8] his lease in milliseconds, ARGV[9] what he is called
-- ARGV[10] the ways to hold the keys, ARGV[11] how many slots there are; 0: none
-- reply    time                 granted, with the number that was proposed
--          {number, time}       granted with another one, or already mine
--          {pttl, holder, time} held by another; pttl -1: a key without a TTL
--          {pttl, holder, time, 0, slot}  the slot is; the other one is free, or none (0)
--          {rest, waiter, time, 0}  free, but another waits for it who came earlier;
--                               his lease has rest milliseconds yet
--          {marker, time}       not granted: the node forgot; '': it has no marker
--          {time}               not granted: it came too late
--          error WRONGTYPE      a key is no lock, a counter no number, or a queue none
--
-- Times are the node's, in microseconds. The usual reply is a number and no list,
-- which costs the node a tenth of the whole call.
--
-- Atomic, because "who has it" must speak of the same instant as the refusal, because
-- all keys must be had or none, and because each number must belong to one grant: the
-- counter rises with every one. "Already mine" is a grant: the request may arrive
-- twice (a reply was lost and the connection made anew), and the second copy must not
-- read its own key as somebody else's. It touches neither the TTL, so a late copy
-- prolongs nothing, nor the counter, so one grant has one number.
--
-- The number is larger than those of all who have held alone what this lock takes in,
-- or what takes it in: a key's counter (:fence) has the last number of those who held
-- it, or a slot of it, and another (:below) the largest of those who held something below
-- it. Locks that lie side by side share no counter that both read, or each would raise the
-- other's number. Who holds it shared has the largest number there was; it is stored with
-- all that he holds, for the next who holds one of the keys alone may know nothing of the
-- others.
--
-- The number is the one proposed, which is the same at all nodes, as long as that
-- is more than the counters and within half a second of the node's time: the clock
-- of a client is not to be trusted, and a node that lost its counters must start
-- above all that it has handed out before.
--
-- A counter lives for a day after its last use, and up to an hour longer: a number
-- of the same hour as the last one leaves its TTL alone, which is cheaper by far. One
-- that is not the time (count + 1: the counter is ahead) says nothing of when the TTL
-- was set, and sets it again.
--
-- First come, first served: a lock that is free goes to nobody while somebody waits
-- for it whose ticket is lower. Who is refused is in the queue from the same instant on,
-- or the lock might be released between the two and he would not be told.
--
-- The counters are written before the lock: an error does not roll back, and a lock
-- that nobody knows of would stand for a TTL.
local latest = ARGV[4] + 0
if latest > 0 and clock() > latest then
  return {clock()}
end
local token, ticket = ARGV[1], ARGV[6] + 0

-- One look at all keys and queues, which are mostly not there, and one at the counters and
-- the marker. (The tables begin with room for a path of five: one that grows from nothing
-- costs as much as a command.)
local locks = #ARGV[10]
local looks, names, ways = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, {unpack(KEYS)}
for i = 1, locks do
  local key = KEYS[i]
  looks[i], looks[locks + i] = key, key .. ':queue'
  names[i], names[locks + i] = key .. ':fence', key .. ':below'
  ways[i] = string.sub(ARGV[10], i, i)
end
names[2 * locks + 1] = KEYS[locks + 1]
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
      queueing().enter(ARGV[10], ARGV[7], ARGV[6], ARGV[8], ARGV[9], ARGV[12])
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
    if string.sub(who, #ARGV[7] + 2) + 0 >= ARGV[12] + 0 then
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

local found = redis.call('MGET', unpack(names, 1, 2 * locks + (KEYS[locks + 1] and 1 or 0)))
local count, alone, text, value = 0, false, nil, nil
for i = 1, 2 * locks do
  if found[i] then
    if found[i] ~= text then -- they mostly say the same, one and all
      text, value = found[i], tonumber(found[i])
      if not value then
        return redis.error_reply('WRONGTYPE ' .. names[i] .. ' is no number: it cannot be the counter of ' .. KEYS[(i - 1) % locks + 1])
      end
    end
    found[i] = value
  end
end
for i = 1, locks do
  local own, below = found[i] or 0, found[locks + i] or 0
  if own > count then
    count = own
  end
  if ways[i] == 'w' or ways[i] == 'r' then
    names[i], found[i] = names[locks + i], below
  else
    found[i], alone = own, alone or ways[i] == 'x' or ways[i] == 'o'
    if below > count then
      count = below
    end
  end
end
if mine == locks then
  return {count, clock()}
end
if KEYS[locks + 1] then
  local marker = found[2 * locks + 1] or ''
  if marker ~= ARGV[5] then
    return {marker, clock()}
  end
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

local number, proposed = count, ARGV[3] + 0
if alone then
  local time = clock()
  number = math.max(math.min(math.max(proposed, time - 500000), time + 500000), count + 1)
end
local step, text -- they are mostly as far behind, one and all
for i = 1, locks do
  local name, from = names[i], found[i]
  if number > from then
    if from > 0 and number ~= count + 1 and number % 3600000000 > number - from then
      if step ~= number - from then
        step, text = number - from, string.format('%.0f', number - from)
      end
      redis.call('INCRBY', name, text)
    elseif not redis.call('SET', name, number, 'PX', '90000000', from > 0 and 'XX' or 'NX') then
      return redis.error_reply('WRONGTYPE ' .. name .. ' is no number: it cannot be the counter of ' .. KEYS[i])
    end
  end
end
for i = 1, locks do
  hold(KEYS[i], ways[i], token, ARGV[2], left[i], not busy)
end
if entries then
  for i, member in pairs(entries) do
    redis.call('ZREM', looks[locks + i], member)
  end
end
if ARGV[11] ~= '0' and redis.call('EXISTS', looks[2 * locks - 1]) == 1 then
  local slot = another(KEYS[locks - 1])
  if slot > 0 then
    queueing().wake(KEYS[locks - 1], 'l', slot)
  end
end
if number == proposed then
  return clock()
end
return {number, clock()}
