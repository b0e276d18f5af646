-- extend: restore the full TTL of a lock that this token still holds.
--
-- KEYS     of the lock
-- ARGV[1]  token, ARGV[2] TTL in milliseconds, ARGV[3] the lock modes of the keys
-- reply    time                 extended; the node's time in microseconds
--          0                    gone: expired, deleted, or lost by the node; or broken
--          {pttl, holder}       held by another token
--          error WRONGTYPE      a key is no lock
--
-- Atomic, because between a look and a PEXPIRE the key may expire and be taken by another token, whose TTL the script
-- would then set. The script reports a missing key, and never sets it again: the client must know which nodes it has
-- refilled, since those say nothing about the time in between. The script does not read the node's marker: a key that
-- this token still holds was not lost.
if redis.call('EXISTS', $broken .. ARGV[1]) == 1 then
  return 0
end
local left = {}
for i = 1, #ARGV[3] do
  local key, way = KEYS[i], string.sub(ARGV[3], i, i)
  local who, rest, ttl = holder(key, way, ARGV[1])
  left[i] = ttl
  if not who then
    return 0
  elseif type(who) == 'table' then
    return who
  elseif who ~= true then
    return {rest, who}
  end
end
for i = 1, #ARGV[3] do
  local key, way = KEYS[i], string.sub(ARGV[3], i, i)
  if way ~= 'x' and way ~= 'o' then
    redis.call('PEXPIRE', key, math.max(left[i], ARGV[2] + 0)) -- first: once it has written, a script may go on at a full server
    hold(key, way, ARGV[1], ARGV[2], left[i])
  else
    redis.call('PEXPIRE', key, ARGV[2])
  end
end
return clock()
