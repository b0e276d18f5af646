-- raise, the usual cases: one key, or one and the folders above it, held exclusively or shared;
-- the token still holds all of them, the counters exist, and that of the key itself is smaller than
-- the fence. It is put before the rest of raise, which handles all other cases. For these it does
-- the same, at half the cost.
local ways, locks = ARGV[3], #ARGV[3]
local shared = string.find(ways, '^r*s$')
if shared or string.find(ways, '^w*x$') then
  local mine = shared or redis.call('MGET', KEYS[locks])[1] == ARGV[1] -- MGET gives nil for a set
  local sets, from, ms = shared and locks or locks - 1, shared and $rangeR or $rangeW, 0
  if sets > 0 then
    local time = redis.call('TIME')
    ms = time[1] * 1000 + math.floor(time[2] / 1000)
  end
  for i = 1, mine and sets or 0 do -- the same test as in holder, with the ranges of kinds.lua
    if i == locks then
      from = 0
    end
    local score = mine and redis.pcall('ZSCORE', KEYS[i], ARGV[1])
    mine = type(score) == 'string' and score - from >= ms and score - from < $stride and redis.call('PTTL', KEYS[i]) > 0
  end
  local below = mine and locks > 1 and redis.call('ZMSCORE', $belows, unpack(ARGV, 4, 2 + locks))
  local behind = {0, 0, 0, 0, 0, 0, 0, 0}
  for i = 1, below and locks - 1 or 0 do
    mine = mine and below[i]
    behind[2 * i - 1], behind[2 * i] = ARGV[2], ARGV[3 + i]
  end
  -- All counters are raised or none: this one shows whether they can be. The others exist, and
  -- may be larger already.
  if mine and redis.pcall('ZADD', $fences, 'XX', 'GT', 'CH', ARGV[2], ARGV[3 + locks]) == 1 then
    if below then
      redis.call('ZADD', $belows, 'GT', unpack(behind, 1, 2 * locks - 2))
    end
    return 1
  end
end
