-- join: make sure that the node has a marker of this server process, and keeps the description of its set.
--
-- KEYS[1]  the marker; absent: only reply the time
-- KEYS[2]  the description that the node keeps, KEYS[3] its ballots for the next one, which end when it is told that
-- ARGV[1]  run_id, as INFO has it; empty: the server does not say
-- ARGV[2]  the client's own time, in milliseconds
-- ARGV[3]  the number of the database; empty: the server does not say
-- ARGV[4]  the description that the client has; empty: none
-- ARGV[5]  the address of this node in it; empty: do not store it where the node keeps none
-- ARGV[6]  a marker. A node that keeps no description stores this one only if its marker is ARGV[6]; or if it has taken
--          this description in the choice, or noted before the choice that it becomes a member by it: then it counts
--          as if it had been told at once
-- reply    {marker, before, time, kept}
--
-- The marker is version:run_id:born:writer:db:epoch. Version is $version; the script changes nothing at a node whose
-- marker has another one. Born is when the marker was written, in milliseconds of the node's time, and writer the same
-- moment by the clock of the client that wrote it. Epoch is that of the node's description; 0: none. So each grant
-- proves it.
--
-- Before is the marker that the script found. It has the same run_id, born and db if the node has been running with its
-- data ever since. It is '' if the node has none (it is new, was emptied, or was restarted without its data), or keeps
-- an earlier description than its marker says, since somebody has deleted that. It is another marker if the node was
-- restarted with its data, or the data is of another server or another database (SWAPDB).
--
-- A marker that was born later than now shows that the clock has been set back since. The script writes a new one: the
-- age of the old one would say nothing before that time has come. If writer is later than the client's time, the script
-- sets it to that: the marker is not new, but its age counts from now.
--
-- Kept is the node's own address, an end of line, and a description, which begins with its epoch and the name of the
-- set. A later description of the same set replaces an earlier one, and never the other way round. The script leaves
-- alone what a node keeps of another set: an operator decides.
--
-- Atomic, because two clients that both find the marker missing must agree on one, or each would make the other start
-- again; and because a description and the marker that names it must change together.
redis.call('GETRANGE', KEYS[1] or $marker, '0', '0') -- a user who may not do this cannot release a lock, and is to get none
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
if not KEYS[1] then
  return {'', '', now, ''}
end
local before = redis.pcall('GET', KEYS[1])
before = type(before) == 'string' and before or ''
local kept = redis.call('GET', KEYS[2]) or ''
if (string.match(before, '^(%d+):') or '$version') ~= '$version' then
  return {before, before, now, kept}
end
local id, born, writer, db, was = string.match(before, '^%d+:([^:]*):(%d+):(%-?%d+):(%d*):(%d+)$')
local self, epoch, set = string.match(kept, '^([^\n]*)\n{"epoch":(%d+),"set":"([^"]*)"')
epoch = tonumber(epoch or 0)
if ARGV[4] ~= '' then
  local later, of = string.match(ARGV[4], '^{"epoch":(%d+),"set":"([^"]*)"')
  local choice = redis.call('HMGET', KEYS[3], 'epoch', 'description', 'comes')
  local comes = id == ARGV[1] and choice[3] == id .. ':' .. born .. ' ' .. ARGV[4]
  local same = ARGV[6] ~= '' and before == ARGV[6]
  local leave = ARGV[5] ~= '' and not set and (same or choice[2] == ARGV[4] or comes)
  if leave or set == of and later + 0 > epoch then
    -- A node that is no member any more, and becomes one by another address, gets that address.
    if not self or ARGV[5] ~= '' and not string.find(ARGV[4], '"' .. self .. '"', 1, true) then
      self = ARGV[5]
    end
    epoch, kept = later + 0, self .. '\n' .. ARGV[4]
    redis.call('SET', KEYS[2], kept)
    redis.call('DEL', KEYS[3])
    if leave and choice[1] ~= later and not comes then -- otherwise it has lost nothing since it took part, or was chosen
      redis.call('HSET', KEYS[3], 'lost', later)
    end
  end
end
local ms, slack = math.floor(now / 1000), $bornSlack
if was and was + 0 > epoch then
  id, before = nil, ''
end
if id == ARGV[1] and born - ms <= slack and (db == '' or ARGV[3] == '' or db == ARGV[3]) then
  if writer - ARGV[2] > slack then
    writer = ARGV[2]
  end
else
  born, writer, db = string.format('%.0f', ms), ARGV[2], ARGV[3]
end
local marker = table.concat({'$version', ARGV[1], born, writer, db, string.format('%.0f', epoch)}, ':')
if marker ~= before then
  redis.call('SET', KEYS[1], marker)
end
return {marker, before, now, kept}
