-- release, the usual cases: one key that is held alone or shared, and nobody waits; or it is
-- held alone, and the first of those who wait is alive and wants it alone, and is told. It is
-- put before the rest of release, and does the same at half the cost.
if ARGV[2] == 'x' or ARGV[2] == 's' then
  local key, queue = KEYS[1], KEYS[1] .. ':queue'
  local waits = redis.call('EXISTS', queue) == 1
  if ARGV[2] == 's' then
    if not waits and redis.pcall('ZREM', key, ARGV[1]) == 1 then
      return 1
    end
  elseif redis.pcall('GET', key) == ARGV[1] then
    if not waits then
      redis.call('DEL', key)
      return 1
    end
    -- Who is alive is as line has it, and who is told as wake (queue.lua).
    local first = redis.pcall('ZRANGE', queue, 0, 0)[1] or ''
    local process, number, deadline = string.match(first, '^(%S+)%.(%d+) (%d+) x ')
    if process then
      local time = redis.call('TIME')
      local rest = deadline - time[1] * 1000 - time[2] / 1000
      if rest > 0 and rest <= 3000 then
        redis.call('DEL', key)
        redis.pcall('PUBLISH', 'redlock:wake:' .. process, process .. '.' .. number)
        return 1
      end
    end
  end
end
