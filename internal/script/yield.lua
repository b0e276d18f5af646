-- yield: delete a lock if this token still holds it, call the waiters that are next, and enter the queue again.
--
-- KEYS     of the lock
-- ARGV[1]  token
-- ARGV[2]  ticket, ARGV[3] the waiter, ARGV[4] its lease in milliseconds
-- ARGV[5]  the node's time, in microseconds, after which the waiter no longer waits
-- ARGV[6]  the lock modes of the keys, ARGV[7] the slot that the lock holds; 0: none
-- reply    as release.lua
--
-- Atomic, because this waiter came before others. An attempt that was granted here and failed elsewhere must not cost
-- it the place in the queue that the grant took away. Else the waiters behind it could take node after node while it
-- tries.
return giveBack(ARGV[6], ARGV[1], ARGV[7] ~= '0' and ARGV[7], function()
  if clock() <= ARGV[5] + 0 then
    queueing().enter(ARGV[6], ARGV[3], ARGV[2], ARGV[4], ARGV[1])
  end
end)
