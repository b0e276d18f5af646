package fresh

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/internal/script"
)

// Forget makes a node forget to which set it belongs, what it has promised in a choice, and how long it has been
// there. The node is to clients as one that has lost its data: it has no vote for a quarantine, and a majority of the
// members of a set that has it as a member tells it the description. Locks and fences stay.
//
// It is one command, so that no client finds a node that has forgotten a part. It reports whether there was anything
// to forget.
func Forget(ctx context.Context, client *redis.Client) (bool, error) {
	n, err := client.Del(ctx, append(slices.Clone(script.Sets), script.Marker)...).Result()
	return n > 0, err
}

// Unsettle makes a node forget how long it has been there, and nothing else: it has no vote for a quarantine.
func Unsettle(ctx context.Context, client *redis.Client) error {
	return client.Del(ctx, script.Marker).Err()
}
