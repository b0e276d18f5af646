-- release, without a look at the queue: compare and delete, or the holder.
--
-- It is laid over internal/script/release.lua. It gets the same keys and arguments,
-- and has the same replies.
local holder = redis.call('GET', KEYS[1])
if holder == ARGV[1] then
  redis.call('DEL', KEYS[1])
  return 1
end
if not holder then
  return 0
end
return {redis.call('PTTL', KEYS[1]), holder}
