-- raise: have the counter of a lock that is still mine say my number.
--
-- KEYS[1]  the lock
-- KEYS[2]  its counter
-- ARGV[1]  token, ARGV[2] the number
-- reply    1                    the counter says it
--          0                    not mine any more, or the counter is past it
--          error WRONGTYPE      the lock is not a string
--
-- Atomic, because a number counts as stored only if that was in the time of the
-- grant: whoever is granted the lock here next gets a larger one then. A counter
-- that is past the number says no, for it may belong to a later grant of ours that
-- a copy of this request knows nothing of.
if redis.call('GET', KEYS[1]) == ARGV[1] and tonumber(redis.call('GET', KEYS[2]) or 0) <= tonumber(ARGV[2]) then
  redis.call('SET', KEYS[2], ARGV[2], 'PX', 90000000)
  return 1
end
return 0
