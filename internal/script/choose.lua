-- choose: take part in choosing the set's next description (Paxos, for one value for each epoch).
--
-- KEYS[1]  the description that the node keeps, KEYS[2] its ballots for the next one
-- ARGV[1]  the epoch to choose for
-- ARGV[2]  the ballot: a fixed number of digits, so that ballots can be compared as texts
-- ARGV[3]  the description to take; empty: promise to take none of a smaller ballot
-- ARGV[4]  the set; empty: none keeps a description yet
-- ARGV[5]  'comes': the node is to become a member by this description, and takes no part in choosing it
-- ARGV[6]  the node's marker as the client last saw it; absent or '': do not compare
-- reply    {kept, promised, taken, description, marker, lost}
--
-- Promised is the largest ballot that the node has heard of, and taken that of the description which it has taken last.
-- If promised is larger than the ballot, the node has refused. A node that does not keep the description of the epoch
-- before this one takes no part. Nor does a node of another set: it would be in the majorities of two choices at once,
-- and what it takes in the one would hide what it has taken in the other.
--
-- Lost is 1 if the node may have lost its data since it first kept the description of the epoch before, and was told it
-- again (join.lua): it may have taken a description of this epoch and forgotten it. Then its answer counts only if all
-- members answer and agree: another member shows what a majority has taken.
--
-- A node that is to become a member notes that description and its own marker before any client proposes the
-- description. As long as it has the note, and that marker, it has lost nothing since the description was chosen: so it
-- counts as soon as it is told the description.
--
-- A node that has lost its data since the client saw its marker takes no part, and notes nothing. A request that was on its
-- way for long would make it look as if it had lost nothing since.
--
-- A description that a majority of the members before has taken with one ballot is chosen, and no other ever is: a
-- client that comes later with a larger ballot asks a majority, learns which description was taken with the largest
-- ballot there, and proposes that one. Nodes are told the description only when it is chosen (join.lua).
--
-- Atomic, because a node must not take a description that it promises another client, in between, not to take.
local kept, marker = redis.call('GET', KEYS[1]) or '', redis.call('GET', $marker) or ''
local process = string.match(marker, '^%d+:([^:]*:%d+):')
if (ARGV[6] or '') ~= '' and process ~= string.match(ARGV[6], '^%d+:([^:]*:%d+):') then
  return {kept, '', '', '', marker, 0}
end
if ARGV[5] == 'comes' then
  if process then
    redis.call('HSET', KEYS[2], 'comes', process .. ' ' .. ARGV[3])
  end
  return {kept, '', '', '', marker, 0}
end
local epoch, set = string.match(kept, '\n{"epoch":(%d+),"set":"([^"]*)"')
if tonumber(epoch or 0) ~= ARGV[1] - 1 or (set or '') ~= ARGV[4] then
  return {kept, '', '', '', marker, 0}
end
local choice = redis.call('HMGET', KEYS[2], 'epoch', 'promised', 'taken', 'description', 'lost')
local lost = tonumber(choice[5] or -1) == ARGV[1] - 1 and 1 or 0
local promised, taken, description = choice[2] or '', choice[3] or '', choice[4] or ''
if choice[1] ~= ARGV[1] then
  promised, taken, description = '', '', ''
end
if ARGV[2] < promised or ARGV[2] == promised and ARGV[3] == '' then
  return {kept, promised, taken, description, marker, lost}
end
promised = ARGV[2]
if ARGV[3] ~= '' then
  taken, description = ARGV[2], ARGV[3]
end
redis.call('HSET', KEYS[2], 'epoch', ARGV[1], 'promised', promised, 'taken', taken, 'description', description)
return {kept, promised, taken, description, marker, lost}
