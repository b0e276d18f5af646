-- extend, the usual case: one key that this token still holds exclusively. It is put before
-- the rest of extend, and does the same at half the cost. A token that is broken (break.lua) may have come
-- since, with a request that was under way: it is not extended.
if redis.call('EXISTS', $broken .. ARGV[1]) == 1 then
  return 0
end
if ARGV[3] == 'x' and redis.pcall('GETRANGE', KEYS[1], '0', $lastOfToken) == ARGV[1] then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
