-- probe: does this server have the commands of the scripts, and do its scripts stay in the process that got them?
--
-- KEYS[1]  a key that no client writes
-- reply    the name of a command that the server does not have; or 1 they stay, 0 they do not, -1 it cannot be asked
--
-- rename-command takes a command from scripts, too, and the error of a script does not name it. The script asks the ACL
-- whether a command exists: that runs nothing, and adds nothing to the server's count of errors. The calls are whole:
-- in one with too few arguments the server could not tell the keys. All works without PUBLISH.
--
-- Redis before 7.0, and what was made from it, replicates and persists scripts, so another process may know them: a
-- replica that is promoted, or the same server after a restart. There a script may choose to have its effects
-- replicated in place of its text, but not once it has written: then replicate_commands() returns false. Since Redis
-- 7.0 there is nothing left to choose, and it always returns true. DEL of a key that is not there counts as a write.
local key = KEYS[1]
for _, c in ipairs(redis.acl_check_cmd and {
  {'DEL', key}, {'EXISTS', key}, {'GET', key}, {'GETRANGE', key, '0', '0'}, {'HMGET', key, 'a'}, {'HSET', key, 'a', 'b'},
  {'MGET', key}, {'PEXPIRE', key, '1'}, {'PTTL', key}, {'SET', key, 'a'}, {'TIME'},
  {'ZADD', key, '1', 'a'}, {'ZCOUNT', key, '0', '1'}, {'ZMSCORE', key, 'a'}, {'ZRANGE', key, '0', '0'},
  {'ZRANGEBYSCORE', key, '0', '1'}, {'ZREM', key, 'a'}, {'ZREMRANGEBYSCORE', key, '0', '1'},
  {'ZREVRANGEBYSCORE', key, '1', '0'}, {'ZSCORE', key, 'a'}} or {}) do
  if not pcall(redis.acl_check_cmd, unpack(c)) then
    return c[1]
  end
end
if not redis.replicate_commands then
  return -1
end
redis.call('DEL', KEYS[1])
return redis.replicate_commands() and 1 or 0
