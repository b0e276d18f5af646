-- yield: delete a lock if it is still mine, and wait for it again.
--
-- KEYS     of the lock; those are woken whose turn it is
-- ARGV[1]  token
-- ARGV[2]  ticket, ARGV[3] the waiter, ARGV[4] his lease in milliseconds, ARGV[5] what
--          he is called
-- ARGV[6]  the node's time, in microseconds, after which he does not wait any more
-- ARGV[7]  the ways to hold the keys, ARGV[8] the slot that it is; 0: it is
--          none
-- reply    as release.lua
--
-- Atomic, because he has come before others: an attempt that was granted here, and came
-- to nothing elsewhere, must not cost him the place which the grant made an end of, or
-- those behind him could have one node after another while he tries.
return giveBack(ARGV[7], ARGV[1], ARGV[8] ~= '0' and ARGV[8], function()
  if clock() <= ARGV[6] + 0 then
    queueing().enter(ARGV[7], ARGV[3], ARGV[2], ARGV[4], ARGV[5], ARGV[9], ARGV[1])
  end
end)
