-- raise: store the fence of a lock that this token still holds in the lock's counters.
--
-- KEYS     of the lock
-- ARGV[1]  token, ARGV[2] the fence, ARGV[3] the lock modes of the keys
-- ARGV[4] and on: the keys' buckets
-- reply    1                    the counters have it; those of keys that others may hold as
--                               well may have more
--          0                    the token no longer holds the lock, or a counter is larger
--                               than the fence, or is missing
--          error WRONGTYPE      a key is no lock
--
-- Atomic, because a fence counts as stored only if it was stored while the token held the
-- lock: the next grant of the lock here then gets a larger one. A counter that is larger
-- than the fence refuses, for its number may belong to a later grant of this client that a
-- copy of this request knows nothing of; or to another name in the same bucket, and then
-- the next attempt decides. The counter of a key that others may hold as well, or of what
-- lies below it, may rise at any time, and does not refuse. A missing counter refuses: the
-- grant had left one there, so it was lost, and may have been larger than the fence.
--
-- raise_usual.lua defines ways and locks.
looking()
local number = ARGV[2] + 0
for i = 1, locks do
  local who = holder(KEYS[i], string.sub(ways, i, i), ARGV[1])
  if type(who) == 'table' then
    return who
  elseif who ~= true then
    return 0
  end
end

-- One look at each table, and one write: nothing is raised unless all is.
local fences, belows = {$fences}, {$belows}
for i = 1, locks do
  local all = tableOf(string.sub(ways, i, i)) == belows[1] and belows or fences
  all[#all + 1] = ARGV[3 + i]
end
local own, below = fences[2] and redis.call('ZMSCORE', unpack(fences)), belows[2] and redis.call('ZMSCORE', unpack(belows))
local f, b = 0, 0
fences, belows = {$fences, 'GT'}, {$belows, 'GT'}
for i = 1, locks do
  local way, all, count = string.sub(ways, i, i), fences, nil
  if tableOf(way) == belows[1] then
    b, all = b + 1, belows
    count = below[b]
  else
    f = f + 1
    count = own[f]
  end
  if not count then
    return 0
  end
  if count + 0 <= number then
    all[#all + 1], all[#all + 2] = ARGV[2], ARGV[3 + i]
  elseif not range[way] then
    return 0
  end
end
if fences[3] then
  redis.call('ZADD', unpack(fences))
end
if belows[3] then
  redis.call('ZADD', unpack(belows))
end
return 1
