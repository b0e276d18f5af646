-- break: take a lock away from this token for good, and call the waiters that are next.
--
-- KEYS     of the lock
-- ARGV[1]  token, ARGV[2] the lock modes of the keys, ARGV[3] the slot that the lock holds; 0: none
-- ARGV[4]  for how many milliseconds the token counts as broken
-- reply    as release.lua; an error if the node cannot note that the token is broken
--
-- The note is a key of its own, with a TTL. While it is there, extend.lua does not extend the token, even if the token
-- comes back: the holder sets it again, or a request was under way.
--
-- Atomic, because an extension between the note and the deletion would find the token and the note. A node that is full
-- drops the token all the same, and replies the error of the note: an extension may put the token back there.
local noted = redis.pcall('SET', $broken .. ARGV[1], '1', 'PX', ARGV[4])
local said = giveBack(ARGV[2], ARGV[1], ARGV[3] ~= '0' and ARGV[3])
return noted.err and noted or said
