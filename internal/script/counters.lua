-- counters: the counters of fences. It is put before the scripts that number locks, after
-- kinds.
--
-- The counters are buckets of two sorted sets, redlock:fence and redlock:below (table.go).
-- Several names share a bucket, and two keys of one lock may have the same bucket. So a
-- script stores a number and never adds to one, and stores it only if it is larger than the
-- number in the bucket.
--
-- Clients from before the buckets have counters of their own, KEY:fence and KEY:below. Such
-- clients are present if their marker, redlock:node, is there: without it the node does not
-- vote for them. Then, and only then, the scripts also read and write the old counters. A
-- value written to them lives for a day, as long as what the old clients write: an old
-- client counts on in it and leaves its TTL alone for an hour, so with a shorter TTL the
-- old clients' own numbers would be lost.

-- tableOf gives the table that has the fences of locks that hold a key in this mode: the
-- key's own, or that of what lies below the key.
local function tableOf(way)
  if way == 'w' or way == 'r' then
    return $belows
  end
  return $fences
end

-- older gives the value of an old client's counter for the key; 0: it has none.
-- tell stores a number, as text, in that counter; has is its value before. It gives the
-- error to return if the counter's key is something else. Both are defined only if old
-- clients are present.
local older, tell
local function olders()
  older = function(key, way)
    local says = redis.pcall('GET', key .. string.gsub(tableOf(way), 'redlock', ''))
    return type(says) == 'string' and tonumber(says) or 0
  end

  tell = function(key, way, text, has)
    local name = key .. string.gsub(tableOf(way), 'redlock', '')
    if not redis.call('SET', name, text, 'PX', '90000000', has > 0 and 'XX' or 'NX') then
      return redis.error_reply('WRONGTYPE ' .. name .. ' is no number: it cannot be the counter of ' .. key)
    end
  end
end
