-- join: make sure that the node has a marker of this server process, and that the marker
-- says how long a lock may live.
--
-- KEYS[1]  the marker; not there: only the time is asked for
-- KEYS[2]  the marker of earlier versions, which is only read
-- ARGV[1]  run_id, as INFO has it; empty: the server does not say
-- ARGV[2]  the longest TTL that the client knows of, in milliseconds
-- ARGV[3]  the client's own time, in milliseconds
-- ARGV[4]  the number of the database; empty: the server does not say
-- reply    {marker, before, time}
--
-- The marker is run_id:born:writer:longest:db. Born is the moment at which the marker was
-- written, in milliseconds of the node's time, and writer the same moment by the clock of
-- the client that wrote it. Before is the marker that the script found: one with the same
-- run_id, born and db if the node has been running with its data ever since; '' if the node
-- has none (it is new, was emptied, or was restarted without its data); and any other
-- marker if the node was restarted with its data, or the data is of another server or
-- another database (SWAPDB).
--
-- A marker that was born later than now shows that the clock has been set back since. The
-- script writes a new one, since the age of the old one would say nothing before that time
-- has come. The same goes for a writer later than the client's own time, but that alone
-- does not make a marker new: only the age by the two clocks is counted from now.
--
-- Atomic, because two clients that both find the marker missing must agree on one, or each
-- would make the other start again; and because the larger of two TTLs that are announced
-- at once must stay.
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
