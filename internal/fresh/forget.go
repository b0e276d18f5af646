package fresh

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/internal/script"
)

// Forget deletes the description of the set (members and settings) that the node keeps, its votes for the next description,
// and its marker. To clients, the node has then lost its data: it cannot vote until a quarantine is over, and clients of a
// set that has it as a member tell it the description again. Locks and fences stay. Forget is one command, so that no client
// finds a node that has forgotten a part. It returns false if there was nothing to delete.
func Forget(ctx context.Context, client *redis.Client) (bool, error) {
	n, err := client.Del(ctx, append(slices.Clone(script.Sets), script.Marker)...).Result()
	return n > 0, err
}

// Unsettle deletes only a node's marker, if any: the node counts as emptied, and cannot vote until a quarantine is over.
func Unsettle(ctx context.Context, client *redis.Client) error {
	return client.Del(ctx, script.Marker).Err()
}
