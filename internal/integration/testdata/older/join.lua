-- join: see to it that the node's marker is that of this server process.
--
-- KEYS[1]  the marker; not there: only the time is asked
-- ARGV[1]  run_id, as INFO has it; empty: the server does not say
-- reply    {marker, before, time}
--
-- The marker is the run_id, a colon, and the moment at which it was written, in
-- milliseconds of the node's time. Before is what was there: the same if the node
-- has been running with its data ever since, '' if it has none (new, emptied, or
-- restarted without its data), and something else if it was restarted with its
-- data, or the data is another server's.
--
-- Atomic, because two clients that find the marker missing at once must agree on
-- one, or each would make the other start again.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
if not KEYS[1] then
  return {'', '', now}
end
local before = redis.call('GET', KEYS[1]) or ''
local marker = before
if string.sub(before, 1, #ARGV[1] + 1) ~= ARGV[1] .. ':' then
  marker = ARGV[1] .. ':' .. string.format('%.0f', math.floor(now / 1000))
  redis.call('SET', KEYS[1], marker)
end
return {marker, before, now}
