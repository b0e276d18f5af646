-- counters: the counters of fences. It is put before the scripts that number locks, after
-- kinds.
--
-- The counters are buckets of two sorted sets, redlock:fence and redlock:below (table.go).
-- Several names share a bucket, and two keys of one lock may have the same bucket. So a
-- script stores a number and never adds to one, and stores it only if it is larger than the
-- number in the bucket.

-- tableOf gives the table that has the fences of locks that hold a key in this mode: the
-- key's own, or that of what lies below the key.
local function tableOf(way)
  if way == 'w' or way == 'r' then
    return $belows
  end
  return $fences
end
