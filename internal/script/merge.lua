-- merge: read the tables of counters, or raise their numbers.
--
-- KEYS[1]  the table of fences, KEYS[2] that of what lies below
-- ARGV     how many pairs (number, bucket) the first table gets, these, and those for the second; none: only read
-- reply    {{bucket, number, …}, {bucket, number, …}}; 1 if there are arguments
--
-- Before members change once more, each member gets the largest numbers that a majority has (docs/adr, 9). Counters
-- only grow, so it does not matter what comes between reading and raising.
if #ARGV > 0 then
  local at = 2
  for table, pairs in ipairs({ARGV[1] + 0, (#ARGV - 1) / 2 - ARGV[1]}) do
    for i = 1, pairs do
      redis.call('ZADD', KEYS[table], 'GT', ARGV[at], ARGV[at + 1])
      at = at + 2
    end
  end
  return 1
end
return {redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES'), redis.call('ZRANGE', KEYS[2], 0, -1, 'WITHSCORES')}
