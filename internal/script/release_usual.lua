-- release, the usual case: one key that is held alone or shared, and nobody waits. It is
-- put before the rest of release, and does the same at half the cost.
if (ARGV[2] == 'x' or ARGV[2] == 's') and redis.call('EXISTS', KEYS[1] .. ':queue') == 0 then
  if ARGV[2] == 's' then
    if redis.pcall('ZREM', KEYS[1], ARGV[1]) == 1 then
      return 1
    end
  elseif redis.pcall('GET', KEYS[1]) == ARGV[1] then
    redis.call('DEL', KEYS[1])
    return 1
  end
end
