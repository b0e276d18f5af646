-- release, the usual cases: one key that is held exclusively, and its queue is empty, or the first in it is a living
-- waiter that wants the key exclusively. This code stands before the rest of release, which does the same at more cost.
if ARGV[2] == 'x' then
  local key = KEYS[1]
  if redis.pcall('GETRANGE', key, '0', $lastOfToken) == ARGV[1] then
    local first = redis.pcall('ZRANGE', key .. $queueSuffix, '0', '0')[1] -- or its queue is no queue
    local waiter, process, deadline = string.match(first or '', '^((%S+)%.%d+) (%d+) x %.@')
    local rest = 0
    if waiter then -- the test for a living waiter is that of read, and the call that of call (queue.lua)
      local time = redis.call('TIME')
      rest = math.ceil(deadline - time[1] * 1000 - time[2] / 1000)
    end
    if (not first or rest > 0 and rest <= $maxLease) and redis.pcall('DEL', key) == 1 then
      if waiter then
        redis.pcall('PUBLISH', $wakeChannel .. process, waiter)
      end
      return 1
    end
  end
end
