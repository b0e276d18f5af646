package script

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// unused replies whether nobody has used a node: it has no key of this library, and no other key, as far
// as the user's ACL lets it see. If so, it writes a marker.
//
// KEYS[1]  the marker
// KEYS     all keys that the library leaves on a node
// ARGV[1]  the marker to write; empty: only look
//
// Atomic, because a client that connects meanwhile writes a marker, too: whichever comes first stays.
const unused = `
local size = redis.pcall('DBSIZE')
if redis.call('EXISTS', unpack(KEYS)) > 0 or type(size) == 'number' and size > 0 then
  return 0
end
if ARGV[1] ~= '' then
  redis.call('SET', KEYS[1], ARGV[1])
end
return 1`

// Unused reports whether nobody has used a server since it was started, or has lost its data.
func Unused(ctx context.Context, client *redis.Client) (bool, error) {
	return runUnused(ctx, client, "")
}

// SettleUnused gives a server the marker of one that has been running for a long time, and reports
// true, if nobody has used it. It is for a caller that has been told that nobody can hold a lock
// on the server: one that has lost its data looks the same.
func SettleUnused(ctx context.Context, client *redis.Client) (bool, error) {
	mark, err := SettledNow(ctx, client)
	if err != nil {
		return false, err
	}
	return runUnused(ctx, client, mark)
}

func runUnused(ctx context.Context, client *redis.Client, mark string) (bool, error) {
	is, err := client.Eval(ctx, unused, []string{Marker, OldMarker, Fences, Belows}, mark).Int()
	return is == 1, err
}
