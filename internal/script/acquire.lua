-- acquire: take a lock for one token and number the grant, or report the holder and how long it still holds the lock.
--
-- KEYS     of the lock, as many as there are lock modes
-- ARGV[1]  token, ARGV[2] TTL in milliseconds
-- ARGV[3]  the proposed fence: the client's time in microseconds; shared lock: above all that the node may have lost
-- ARGV[4]  the node's time after which the client no longer wants the lock; 0: no limit
-- ARGV[5]  the node's marker as the client last saw it; '': do not compare
-- ARGV[6]  the waiter's ticket; 0: the client will not wait; -1: it has the lock already, so the queue does not count
-- ARGV[7]  the waiter's name, ARGV[8] its lease in milliseconds
-- ARGV[9]  the lock modes of the keys, ARGV[10] the number of slots; 0: none
-- ARGV[11] and on: the keys' buckets
-- reply    time                 granted, with the proposed fence
--          {number, time}       granted with another fence, or already held by this token
--          {pttl, holder, time} held by another token; pttl -1: a key without a TTL
--          {pttl, holder, time, 0, slot}  this slot is held; slot is a free one; 0: none is
--          {rest, waiter, time, 0}  free, but a waiter that came earlier goes first; its lease ends in rest milliseconds
--          {marker, time}       refused: the marker differs, so the node has lost data; '': it has no marker
--          {time, marker}       refused: the request arrived after ARGV[4]
--          error WRONGTYPE      a key is no lock, or a counter no number
--
-- Times are the node's, in microseconds. The usual reply is a number: a list costs the node a tenth of the whole call.
--
-- The script must be atomic for three reasons. The holder in a refusal must be the one of that instant. All keys are
-- taken or none. Each fence must belong to one grant: the counters rise with each grant. "Already held by this token"
-- is a grant: a request may arrive twice (its reply was lost and the connection was made anew), and the second copy
-- must not take its own key for another holder's. That grant does not touch the TTL, so a late copy prolongs nothing,
-- nor the counters, so it takes no fence of its own.
--
-- The fence is larger than that of every exclusive lock on a key that this lock contains, or that contains this lock.
-- One counter of a key has the last fence of a lock on the key, or on a slot of it. Another counter has the largest
-- fence of a lock on something below the key (counters.lua). Locks on keys that lie side by side read no counter in
-- common, unless two keys have the same bucket; otherwise each would raise the other's fence. A shared lock gets the
-- largest fence that has been given. It is stored with every key of the lock, since the next exclusive lock on one of
-- the keys may not read the others.
--
-- The fence is the proposed one, which is the same at all nodes, as long as it is larger than the counters and within
-- half a second of the node's time: a client's clock is not trusted, and a node that has lost its counters must start
-- above every fence that it has given before. A client that wants a shared lock proposes a number above all that this
-- node may have lost, and gets it if no counter is larger.
--
-- A grant leaves its fence, or a larger one, in every bucket in which it was stored. So a copy of the request is told
-- the smallest number in those buckets, and not the largest of all counters: in a bucket that was only read, a lock on
-- another name may have stored a larger number since, and that number is not stored as this lock's. Where a bucket is
-- missing, the node has lost its table since, and "already held" is no grant.
--
-- First come, first served: a free lock goes to no client while a waiter with a lower ticket is in the queue. A refused
-- waiter is in the queue from the same instant on. Otherwise the lock might be released between the refusal and the
-- entry, and no release would call the waiter.
--
-- The script writes the counters before the lock: an error does not roll back, and a lock that no client knows of would
-- stand for a TTL. So whatever may fail comes before the lock is written, or is taken back, or does no harm (pcall).
-- This includes commands that an ACL denies: to the client, "denied" means that the lock is not there.
local latest = ARGV[4] + 0
if latest > 0 and clock() > latest then
  return {clock(), redis.call('MGET', $marker)[1] or ''}
end
local token, ticket, locks = ARGV[1], ARGV[6] + 0, #ARGV[9]
local looks, ways, left, mine = {unpack(KEYS)}, {}, {}, 0
for i = 1, locks do
  ways[i], looks[locks + i] = string.sub(ARGV[9], i, i), KEYS[i] .. $queueSuffix
end

-- refuse puts the client into the queues of the keys if it has a ticket, and returns the reply that it was given.
local function refuse(reply)
  if ticket > 0 then
    queueing().enter(ARGV[9], ARGV[7], ARGV[6], ARGV[8], token)
  end
  return reply
end

-- another returns the number of a free slot of the semaphore with this key, from 1; 0: none is free.
local function another(key)
  for i = 1, ARGV[10] + 0 do
    if redis.call('EXISTS', key .. $slotInfix .. i) == 0 then
      return i
    end
  end
  return 0
end

local queues = redis.call('EXISTS', unpack(looks)) -- mostly, neither keys nor queues exist
local busy = queues > 0
for i = 1, busy and locks or 0 do
  local who, rest, ttl = holder(KEYS[i], ways[i], token)
  left[i] = ttl
  if who or ttl then
    queues = queues - 1 -- it was a key
  end
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
    least = math.min(least, redis.call('ZSCORE', tableOf(ways[i]), ARGV[10 + i]) or 0)
  end
  if least == 0 then
    return {'', clock()}
  end
  return {least, clock()}
end

local marker = ARGV[5] ~= '' and (redis.call('MGET', $marker)[1] or '')
if marker and marker ~= ARGV[5] then
  return {marker, clock()}
end

local queue = queues > 0 and queueing()
local entries = {}
for i = 1, queue and ticket >= 0 and locks or 0 do
  if ways[i] ~= 'o' then
    local waiter, rest, member = queue.ahead(looks[locks + i], ways[i], ARGV[7], ticket)
    if waiter then
      return refuse({rest, waiter, clock(), 0})
    end
    entries[i] = member
  end
end

-- The counters that matter: of the keys, and of what is below keys wanted exclusively, shared, or for a slot.
local time, proposed, count, alone = clock(), ARGV[3] + 0, 0, false
local has = redis.call('ZMSCORE', $fences, unpack(ARGV, 11))
for i = 1, locks do
  local way = ways[i]
  count = math.max(count, has[i] or 0)
  if way ~= 'w' and way ~= 'r' then
    alone = alone or way == 'x' or way == 'o'
    count = math.max(count, redis.call('ZSCORE', $belows, ARGV[10 + i]) or 0)
  end
end
local number = math.max(math.min(proposed, time + $clamp), count, 1)
if alone then
  number = math.max(math.min(math.max(proposed, time - $clamp), time + $clamp), count + 1)
end
local text = number == proposed and ARGV[3] or string.format('%.0f', number)
local fences, belows = {}, {}
for i = 1, locks do
  local counters = tableOf(ways[i]) == $belows and belows or fences
  if counters == belows or tonumber(has[i] or 0) < number then
    counters[#counters + 1], counters[#counters + 2] = text, ARGV[10 + i]
  end
end
if fences[1] then
  redis.call('ZADD', $fences, 'GT', unpack(fences))
end
if belows[1] then
  redis.call('ZADD', $belows, 'GT', unpack(belows))
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
for i, member in pairs(entries) do
  if redis.pcall('ZREM', looks[locks + i], member) == 1 then
    queue.follow(looks[locks + i], ways[i])
  end
end
if queue and ARGV[10] ~= '0' then
  local slot = another(KEYS[locks - 1])
  if slot > 0 then
    pcall(queue.wake, KEYS[locks - 1], 'l', slot)
  end
end
if number == proposed then
  return clock()
end
return {number, clock()}
