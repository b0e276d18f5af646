-- counters: the counters of fences. It is put before the scripts that number locks, after kinds.
--
-- The counters are buckets of two sorted sets, redlock:fence and redlock:below (table.go). Several names share a
-- bucket, and two keys of one lock may have the same bucket. So a script never adds to a counter: it stores a number if
-- that is larger than the one in the bucket.

-- tableOf returns the table for the fence of a lock that holds a key in a mode: w and r count as locks below the key.
local function tableOf(way)
  if way == 'w' or way == 'r' then
    return $belows
  end
  return $fences
end
