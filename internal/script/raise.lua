-- raise: store the fence of a lock that this token still holds in the lock's counters.
--
-- KEYS     of the lock
-- ARGV[1]  token, ARGV[2] the fence, ARGV[3] the lock modes of the keys
-- ARGV[4] and on: the keys' buckets
-- reply    1                    stored; the counters of keys that others may hold as well may have more
--          0                    the token no longer holds the lock, or a counter is larger than the fence, or is missing
--          error WRONGTYPE      a key is no lock
--
-- Atomic, because a fence counts as stored only if it was stored while the token held the lock: the next grant of the
-- lock here then gets a larger one. A counter that is larger than the fence refuses, for its number may belong to a
-- later grant of this client that a copy of this request knows nothing of; or to another name in the same bucket, and
-- then the next attempt decides. The counter of a key that others may hold as well, or of what lies below it, may rise
-- at any time, and does not refuse. A missing counter refuses: the grant had left one there, so it was lost, and may
-- have been larger than the fence.
local ways, locks, number = ARGV[3], #ARGV[3], ARGV[2] + 0
for i = 1, locks do
  local who = holder(KEYS[i], string.sub(ways, i, i), ARGV[1])
  if type(who) == 'table' then
    return who
  elseif who ~= true then
    return 0
  end
end

local behind = {} -- the tables in which there is a number to raise: all, or none
for i = 1, locks do
  local way = string.sub(ways, i, i)
  local has = redis.call('ZSCORE', tableOf(way), ARGV[3 + i])
  if not has then
    return 0
  elseif has + 0 <= number then
    behind[i] = tableOf(way)
  elseif way == 'x' or way == 'o' then
    return 0
  end
end
for i, counters in pairs(behind) do
  redis.call('ZADD', counters, 'GT', ARGV[2], ARGV[3 + i])
end
return 1
