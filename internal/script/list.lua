-- list: what this node knows about several locks, for a listing (internal/listing). It only reads.
--
-- KEYS     the locks
-- ARGV[1]  how many of them, the first ones, have their queues read, too
-- ARGV[2]  how many members of queues and sets to read before the script ends early
-- ARGV[3]  how many members of one queue, and of one set, to read at most
-- reply    {time, {holder, …}, {pttl, …}, {i, {member, ticket, …}, …}, {i, {token, score, …}, …}}
--          The time is the node's, in microseconds. Holders and pttls are in the order of the
--          keys: the holder is nil where the key is no string, and the pttl -1 where the key is no
--          lock, or its queue no set. There are fewer pttls than keys if the script has ended
--          early, and at least one. Then follow the queues and the sets that are there, with the
--          number of the key before each: the members are those of inspect.lua, dead ones and
--          expired ones included, and only the first ones if there are more than ARGV[3].
--
-- Atomic, because a lock and its queue must be of one instant. The caller gives so few keys, and
-- such bounds, that other clients of the node do not notice the script. The reply is flat because
-- tables cost as much as the commands.
local call = redis.call
local values, time = call('MGET', unpack(KEYS)), call('TIME')
local lefts, queues, sets, room, most = {}, {}, {}, ARGV[2] + 0, ARGV[3] - 1

-- members reads a sorted set for the key with this number, and gives the error if it is none.
local function members(into, i, of)
  local all = redis.pcall('ZRANGE', of, '0', most, 'WITHSCORES')
  if all[1] then
    into[#into + 1], into[#into + 2] = i, all
    room = room - #all / 2
  end
  return all.err
end

for i, key in ipairs(KEYS) do
  local left = call('PTTL', key)
  if i <= ARGV[1] + 0 and members(queues, i, key .. $queueSuffix) or
    not values[i] and left >= 0 and members(sets, i, key) then
    left = -1
  end
  lefts[i] = left
  if room <= 0 then
    break
  end
end
return {time[1] * 1000000 + time[2], values, lefts, queues, sets}
