-- acquire: take the lock for one token, or say who has it and for how long.
--
-- KEYS[1]  the lock
-- ARGV[1]  token, ARGV[2] TTL in milliseconds
-- reply    1                    granted, or already mine
--          {pttl, holder}       held by another; pttl -1: a key without a TTL
--          error WRONGTYPE      the key is not a string: not a lock at all
--
-- Atomic, because "who has it" must speak of the same instant as the refusal.
-- "Already mine" is a grant: the request may arrive twice (a reply was lost and
-- the connection made anew), and the second copy must not read its own key as
-- somebody else's. It does not touch the TTL, so a late copy prolongs nothing.
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return 1
end
local holder = redis.call('GET', KEYS[1])
if holder == ARGV[1] then
  return 1
end
return {redis.call('PTTL', KEYS[1]), holder}
