-- probe: do this server's scripts stay in the process that got them?
--
-- KEYS[1]  a key that no client writes
-- reply    1 they do, 0 they do not, -1 this server cannot be asked
--
-- Redis before 7.0, and what was made from it, replicates and persists scripts, so
-- that another process may know them: a replica that is promoted, or the same server
-- after a restart. There a script may choose to have its effects replicated in place
-- of its text, but not once it has written: replicate_commands() says no then.
-- Since the change of Redis 7.0 that ended all of this, there is nothing left to
-- choose, and it always says yes.
--
-- DEL counts as a write though the key is not there, and changes nothing.
if not redis.replicate_commands then
  return -1
end
redis.call('DEL', KEYS[1])
return redis.replicate_commands() and 1 or 0
