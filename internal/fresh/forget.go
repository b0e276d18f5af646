package fresh

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/internal/script"
)

// Forget deletes the description of the set (members and settings) that the node keeps, its ballots for the next one,
// and its marker. To clients, the node is then one that has lost its data: it has no vote for a quarantine, and clients
// of a set that has it as a member tell it the description again. Locks and fences stay. Forget is one command, so that
// no client finds a node that has forgotten a part. It returns false if there was nothing to delete.
func Forget(ctx context.Context, client *redis.Client) (bool, error) {
	n, err := client.Del(ctx, append(slices.Clone(script.Sets), script.Marker)...).Result()
	return n > 0, err
}

// Unsettle deletes only the marker of a node, which then counts as emptied: it has no vote for a quarantine.
func Unsettle(ctx context.Context, client *redis.Client) error {
	return client.Del(ctx, script.Marker).Err()
}
