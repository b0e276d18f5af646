-- raise, the usual case: one key that is held alone, is still mine, and whose counter is there
-- and behind; and there are no clients from before there were buckets. It is put before the
-- rest of raise, and does the same at half the cost.
if ARGV[3] == 'x' then
  local found = redis.pcall('MGET', KEYS[1], 'redlock:node')
  if found[1] == ARGV[1] and not found[2] and redis.pcall('ZADD', 'redlock:fence', 'XX', 'GT', 'CH', ARGV[2], ARGV[4]) == 1 then
    return 1
  end
end
