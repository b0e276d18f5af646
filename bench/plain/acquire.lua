-- acquire, without fence, amnesia check and queue: SET NX PX, or the holder.
--
-- It is laid over internal/script/acquire.lua when the scenario fence builds this
-- program a second time. It gets the same keys and arguments, and replies in the
-- same form: granted as proposed, and no time.
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return 0
end
return {redis.call('PTTL', KEYS[1]), redis.call('GET', KEYS[1]), 0}
