-- choose: take part in the choice of the set's next description (Paxos, for one value).
--
-- KEYS[1]  what the node keeps of its set
-- KEYS[2]  the choice that is under way
-- ARGV[1]  the epoch to choose for
-- ARGV[2]  the ballot: digits, so many that ballots can be compared as texts
-- ARGV[3]  the description to take; empty: promise to take none of a smaller ballot
-- ARGV[4]  the set; empty: none keeps a description yet
-- ARGV[5]  there: the node is to become a member by this description, and has no part in its choice
-- reply    {kept, promised, taken, description, marker, lost}
--
-- Promised is the largest ballot that the node has heard of, and taken that of the description which it
-- has taken last. If promised is larger than the ballot, the node has refused. A node that does not
-- keep the description of the epoch before this one has no part in the choice. Nor has a node of another
-- set: it would be in the majorities of two choices at once, and what it takes in the one would hide what it
-- has taken in the other.
--
-- Lost is 1 if the node may have lost its data since it first kept the description of the epoch before, and was
-- told it again (join.lua): it may have taken a description of this epoch, and not know it any more. Then it
-- counts only if all members agree: what a majority has taken shows at another one.
--
-- A node that is to become a member notes the description by which it does, and its marker, before that description is
-- proposed to anybody. As long as it has the note, and that marker, it has lost nothing since the description was
-- chosen: told it, the node counts at once.
--
-- A description that a majority of the members before has taken with one ballot is chosen, and no other
-- ever is: who comes later with a larger ballot asks a majority, learns what was taken with the
-- largest ballot there, and proposes that. Only then is it told to nodes (join.lua).
--
-- Atomic, because a node must not take what it has promised meanwhile not to take.
local kept, marker = redis.call('GET', KEYS[1]) or '', redis.call('GET', $marker) or ''
if ARGV[5] then
  local process = string.match(marker, '^%d+:([^:]*:%d+):')
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
