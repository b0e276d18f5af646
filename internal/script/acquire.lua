-- acquire: take the lock for one token and number the grant, or say who has it and
-- for how long.
--
-- KEYS[1]  the lock
-- KEYS[2]  its counter: the number of the last grant
-- KEYS[3]  its queue
-- KEYS[4]  the node's marker; not there: nobody asks whether the node forgot
-- ARGV[1]  token, ARGV[2] TTL in milliseconds
-- ARGV[3]  the number that is proposed: the client's time in microseconds
-- ARGV[4]  the node's time after which nobody wants the lock any more; 0: none
-- ARGV[5]  what the marker says if the node has not forgotten
-- ARGV[6]  the waiter's ticket; 0: nobody will wait; -1: it is ours, whoever waits
-- ARGV[7]  the waiter, ARGV[8] his lease in milliseconds, ARGV[9] what he is called
-- reply    time                 granted, with the number that was proposed
--          {number, time}       granted with another one, or already mine
--          {pttl, holder, time} held by another; pttl -1: a key without a TTL
--          {rest, waiter, time, 0}  free, but another waits for it who came earlier;
--                               his lease has rest milliseconds yet
--          {marker, time}       not granted: the node forgot; '': it has no marker
--          {time}               not granted: it came too late
--          error WRONGTYPE      the lock is not a string, the counter no number, or
--                               the queue none
--
-- Times are the node's, in microseconds. The usual reply is a number and no list,
-- which costs the node a tenth of the whole call.
--
-- Atomic, because "who has it" must speak of the same instant as the refusal, and
-- because each number must belong to one grant: the counter rises with every one.
-- "Already mine" is a grant: the request may arrive twice (a reply was lost and
-- the connection made anew), and the second copy must not read its own key as
-- somebody else's. It touches neither the TTL, so a late copy prolongs nothing,
-- nor the counter, so one grant has one number.
--
-- The number is the one proposed, which is the same at all nodes, as long as that
-- is more than the counter and within half a second of the node's time: the clock
-- of a client is not to be trusted, and a node that lost its counters must start
-- above all that it has handed out before.
--
-- The counter lives for a day after its last use, and up to an hour longer: a number
-- of the same hour as the last one leaves its TTL alone, which is cheaper by far. One
-- that is not the time (count + 1: the counter is ahead) says nothing of when the TTL
-- was set, and sets it again.
--
-- First come, first served: a lock that is free goes to nobody while somebody waits
-- whose ticket is lower. Who is refused is in the queue from the same instant on, or
-- the lock might be released between the two and he would not be told.
--
-- The counter is written before the lock: an error does not roll back, and a lock
-- that nobody knows of would stand for a TTL.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local latest = ARGV[4] + 0
if latest > 0 and now > latest then
  return {now}
end
local ticket = ARGV[6] + 0
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then
  if ticket > 0 then
    enter(KEYS[3], ARGV[7], ARGV[6], now, ARGV[8], ARGV[9])
  end
  return {redis.call('PTTL', KEYS[1]), holder, now}
end
local counter = redis.call('GET', KEYS[2])
local count = tonumber(counter or 0)
if not count then
  return redis.error_reply('WRONGTYPE ' .. KEYS[2] .. ' is no number: it cannot be the counter of ' .. KEYS[1])
end
if holder then
  return {count, now}
end
if KEYS[4] then
  local marker = redis.call('GET', KEYS[4]) or ''
  if marker ~= ARGV[5] then
    return {marker, now}
  end
end
if ticket >= 0 then
  local waiter, lower, rest = first(KEYS[3], now)
  if waiter == ARGV[7] then
    redis.call('ZPOPMIN', KEYS[3])
  elseif waiter and (ticket == 0 or lower < ticket or lower == ticket and waiter < ARGV[7]) then
    if ticket > 0 then
      enter(KEYS[3], ARGV[7], ARGV[6], now, ARGV[8], ARGV[9])
    end
    return {rest, waiter, now, 0}
  end
end
local proposed = ARGV[3] + 0
local number = proposed
if number > now + 500000 then
  number = now + 500000
elseif number < now - 500000 then
  number = now - 500000
end
if counter and number > count and number % 3600000000 > number - count then
  redis.call('INCRBY', KEYS[2], number - count)
else
  if number <= count then
    number = count + 1
  end
  redis.call('SET', KEYS[2], number, 'PX', 90000000)
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
if number == proposed then
  return now
end
return {number, now}
