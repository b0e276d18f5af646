-- raise: have the counters of a lock that is still mine say my number.
--
-- KEYS     of the lock
-- ARGV[1]  token, ARGV[2] the number, ARGV[3] the ways to hold the keys
-- ARGV[4] and on: the keys' buckets
-- reply    1                    the counters say it; that of what others hold, too, may say more
--          0                    not mine any more, or a counter is past it, or is not there
--          error WRONGTYPE      a key is no lock
--
-- Atomic, because a number counts as stored only if that was in the time of the
-- grant: whoever is granted the lock here next gets a larger one then. A counter
-- that is past the number says no, for it may belong to a later grant of ours that
-- a copy of this request knows nothing of; or to another name in the same bucket, and then
-- it is the next attempt's turn. That of a key which others may hold, too, or
-- something below it, may be past it at any time. One that is not there says no, too: the
-- grant has left one there, so it was lost, and may have been past the number.
looking()
local number, behind, theirs = ARGV[2] + 0, {}, redis.call('EXISTS', 'redlock:node') == 1 and {}
for i = 1, #ARGV[3] do
  local key, way = KEYS[i], string.sub(ARGV[3], i, i)
  local who = holder(key, way, ARGV[1])
  if type(who) == 'table' then
    return who
  elseif who ~= true then
    return 0
  end
  local stored = redis.call('ZSCORE', tableOf(way), ARGV[3 + i])
  if not stored then
    return 0
  end
  local count = stored + 0
  if theirs then
    theirs[i] = older(key, way)
    count = math.max(count, theirs[i])
  end
  if count <= number then
    behind[i] = way
  elseif not range[way] then
    return 0
  end
end
for i, way in pairs(behind) do
  redis.call('ZADD', tableOf(way), 'GT', ARGV[2], ARGV[3 + i])
  local wrong = theirs and tell(KEYS[i], way, ARGV[2], theirs[i])
  if wrong then
    return wrong
  end
end
return 1
