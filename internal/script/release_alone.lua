-- release, the usual case: one key that is held alone, and nobody waits. It is put before
-- the rest of release, and does the same at half the cost.
if ARGV[2] == 'x' and redis.pcall('GET', KEYS[1]) == ARGV[1] and redis.call('EXISTS', KEYS[1] .. ':queue') == 0 then
  redis.call('DEL', KEYS[1])
  return 1
end
