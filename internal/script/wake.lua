-- wake: call the waiters of a key that are next. The key was held exclusively, and was released without a script
-- (internal/wire/native.go).
--
-- KEYS[1]  of the lock
-- reply    0
--
-- A waiter, or another client, may have got the lock since: so the script looks for holders.
queueing().wake(KEYS[1], 'x')
return 0
