// Package fresh writes and deletes the marker of a server: the key that names the server process, and since when it has
// its data. Its callers know what the library cannot, for example that no lock can have been lost with the data of a
// new server, which may then vote at once. The library itself waits for a quarantine.
package fresh

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/internal/facts"
	"github.com/quorumlock/redlock/internal/script"
)

// unused replies whether a node has no key of this library. If so, it writes a marker.
//
// KEYS[1]  the marker
// KEYS     all keys that the library leaves on a node
// ARGV[1]  the marker to write; empty: only look
//
// Atomic, because a client that connects meanwhile writes a marker, too: whichever comes first stays.
const unused = `
if redis.call('EXISTS', unpack(KEYS)) > 0 then
  return 0
end
if ARGV[1] ~= '' then
  redis.call('SET', KEYS[1], ARGV[1])
end
return 1`

// Unused reports whether a server has no key at all: nobody has used it since it was started, or it has lost its data.
// It returns an error if the server does not tell this user.
func Unused(ctx context.Context, client *redis.Client) (bool, error) {
	return runUnused(ctx, client, "")
}

// SettleUnused writes a marker (the key that says since when the server has its data) if a server is Unused, and
// returns whether it did. The server then votes at once, as one that has run for years. A server that has lost its data
// looks the same: call this only if the operator vouches that no client holds a lock there.
func SettleUnused(ctx context.Context, client *redis.Client) (bool, error) {
	mark, err := settled(ctx, client)
	if err != nil {
		return false, err
	}
	return runUnused(ctx, client, mark)
}

func runUnused(ctx context.Context, client *redis.Client, mark string) (bool, error) {
	is, err := empty(ctx, client)
	if err != nil || !is {
		return false, err
	}
	n, err := client.Eval(ctx, unused, append([]string{script.Marker, script.Fences, script.Belows}, script.Sets...), mark).Int()
	return n == 1, err
}

// empty reports whether no database of a server has a key, by INFO keyspace; an error if INFO does not say.
func empty(ctx context.Context, client *redis.Client) (bool, error) {
	info, err := client.Info(ctx, "keyspace").Result()
	if err != nil {
		return false, err
	}
	said := false
	for line := range strings.Lines(info) {
		line = strings.TrimSpace(line)
		if said = said || strings.EqualFold(line, "# Keyspace"); said && strings.HasPrefix(line, "db") {
			return false, nil
		}
	}
	if !said {
		return false, fmt.Errorf("INFO keyspace does not say whether the server is empty: %q", info)
	}
	return true, nil
}

// Settle writes a marker by which the server's node votes at once, as SettleUnused does, but whatever keys the server has.
// Call it only for a server that the caller has just started, so that it cannot have lost a lock.
func Settle(ctx context.Context, client *redis.Client) error {
	mark, err := settled(ctx, client)
	if err != nil {
		return err
	}
	return client.Set(ctx, script.Marker, mark, 0).Err()
}

// settled returns a marker that says that the server (run_id) has had its data for ten years: so its node votes at once.
func settled(ctx context.Context, client *redis.Client) (string, error) {
	info, err := client.Info(ctx, "server").Result()
	if err != nil {
		return "", err
	}
	about := make(facts.Facts)
	about.Add(info)
	id := about["run_id"]
	if id == "" {
		return "", fmt.Errorf("INFO server has no run_id: %q", info)
	}
	now, err := client.Time(ctx).Result()
	if err != nil {
		return "", err
	}
	return script.Settled(id, now), nil
}
