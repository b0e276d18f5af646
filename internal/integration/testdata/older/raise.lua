-- raise: have the counters of a lock that is still mine say my number.
--
-- KEYS     of the lock
-- ARGV[1]  token, ARGV[2] the number, ARGV[3] the ways to hold the keys
-- reply    1                    the counters say it; that of what others hold, too, may say more
--          0                    not mine any more, or a counter is past it
--          error WRONGTYPE      a key is no lock
--
-- Atomic, because a number counts as stored only if that was in the time of the
-- grant: whoever is granted the lock here next gets a larger one then. A counter
-- that is past the number says no, for it may belong to a later grant of ours that
-- a copy of this request knows nothing of. That of a key which others may hold, too, or
-- something below it, may be past it at any time.
looking()
local number, behind = ARGV[2] + 0, {}
for i = 1, #ARGV[3] do
  local key, way = KEYS[i], string.sub(ARGV[3], i, i)
  local who = holder(key, way, ARGV[1])
  if type(who) == 'table' then
    return who
  elseif who ~= true then
    return 0
  end
  local name = counter(key, way)
  if tonumber(redis.call('GET', name) or 0) <= number then
    behind[#behind + 1] = name
  elseif not range[way] then
    return 0
  end
end
for _, name in ipairs(behind) do
  redis.call('SET', name, ARGV[2], 'PX', '90000000')
end
return 1
