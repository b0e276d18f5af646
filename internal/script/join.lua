-- join: see to it that the node's marker is that of this server process, and says how
-- long a lock may live.
--
-- KEYS[1]  the marker; not there: only the time is asked
-- KEYS[2]  the marker of earlier versions, which is only read
-- ARGV[1]  run_id, as INFO has it; empty: the server does not say
-- ARGV[2]  the longest TTL that the client knows of, in milliseconds
-- ARGV[3]  the client's own time, in milliseconds
-- ARGV[4]  the number of the database; empty: the server does not say
-- reply    {marker, before, time}
--
-- The marker is run_id:born:writer:longest:db. Born is the moment at which it was
-- written, in milliseconds of the node's time, and writer the same moment by the clock
-- of the client that wrote it. Before is what was there: a marker with the same run_id,
-- born and db if the node has been running with its data ever since, '' if it has none
-- (new, emptied, or restarted without its data), and something else if it was restarted
-- with its data, or the data is another server's, or another database's (SWAPDB).
--
-- A marker that was born later than now is of a clock that has been set back since: it
-- is written anew, since its age would say nothing before that time has come. So is a
-- writer that is later than the client's own time, but that alone makes no marker new:
-- what the two clocks say of its age counts from now.
--
-- Atomic, because two clients that find the marker missing at once must agree on
-- one, or each would make the other start again; and because of two that announce their
-- TTLs at once the larger must stay.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
if not KEYS[1] then
  return {'', '', now}
end
local ms, slack = math.floor(now / 1000), 1000
local before = redis.call('GET', KEYS[1]) or ''
local id, born, writer, longest, db = string.match(before, '^([^:]*):(%d+):(%-?%d+):(%d+):(%d*)$')
longest = string.format('%.0f', math.max(tonumber(longest or '0'), ARGV[2] + 0))
local there = before
if id == ARGV[1] and born - ms <= slack and (db == '' or ARGV[4] == '' or db == ARGV[4]) then
  if writer - ARGV[3] > slack then
    writer = ARGV[3]
  end
else
  born, writer, db = string.format('%.0f', ms), ARGV[3], ARGV[4]
  local old = before == '' and redis.pcall('GET', KEYS[2])
  if type(old) == 'string' then
    local same, since = string.match(old, '^([^:]*):(%d+)$')
    if same == ARGV[1] and since - ms <= slack then
      born, writer = since, string.format('%.0f', ARGV[3] - (ms - since))
      before = nil
    end
  end
end
local marker = ARGV[1] .. ':' .. born .. ':' .. writer .. ':' .. longest .. ':' .. db
if marker ~= there then
  redis.call('SET', KEYS[1], marker)
end
return {marker, before or marker, now}
