-- release, the usual cases: one key that is held exclusively or shared, and its queue is empty.
-- This code is put before the rest of release, which does the same at more cost. It leaves to the
-- next part (handoff.lua) whether the key is held exclusively by this token: mine.
local mine = false
if ARGV[2] == 'x' or ARGV[2] == 's' then
  local key = KEYS[1]
  local waits = redis.call('EXISTS', key .. $queueSuffix) == 1
  if ARGV[2] == 's' then
    if not waits and redis.pcall('ZREM', key, ARGV[1]) == 1 then
      return 1
    end
  else
    mine = redis.pcall('GETRANGE', key, '0', $lastOfToken) == ARGV[1]
    if mine and not waits and redis.pcall('DEL', key) == 1 then
      return 1
    end
  end
end
