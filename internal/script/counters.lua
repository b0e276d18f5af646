-- counters: what the scripts have in common that deal with numbers of locks. It is put
-- before them, after kinds.
--
-- The counters are buckets of two sorted sets, redlock:fence and redlock:below (table.go). A
-- bucket is one of several names', and two keys of a lock may have the same: so what is
-- stored is a number, and never how much is to be added, and only if it is larger than
-- what is there.
--
-- Clients from before there were buckets have counters of their own, KEY:fence and
-- KEY:below. They are about where their marker is, redlock:node, for they have no vote
-- where it is not. There, and nowhere else, their counters are read and written, too. What
-- is written for them lives for as long as what they write, a day: they count on in it, and
-- leave its TTL alone for an hour, so with a shorter one their own numbers would be gone.

-- tableOf gives the one that has the number of whoever holds a key like this: its own, or
-- that of what lies below it.
local function tableOf(way)
  if way == 'w' or way == 'r' then
    return 'redlock:below'
  end
  return 'redlock:fence'
end

-- older gives what the counter for the same says that clients from before have; 0: nothing.
-- tell has that counter say a number, as text; has is what it said. It gives the error to be
-- returned if the key is something else. They are only defined where there are such clients.
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
