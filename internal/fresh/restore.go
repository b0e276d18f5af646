package fresh

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/wire"
)

// restore makes a node keep a description of a set (its members and settings).
//
// KEYS[1]  the description that the node keeps, KEYS[2] the marker, KEYS[3] its ballots for the next description
// ARGV[1]  the description to keep, ARGV[2] the one that it keeps as far as the operator knows
// reply    1, also if the node keeps it already, since the command may be sent again; 0: it keeps another one
//
// The marker is deleted first: if the script ends half-way, the node counts as emptied.
const restore = `
local kept = redis.call('GET', KEYS[1]) or ''
if kept == ARGV[1] then
  return 1
elseif kept ~= ARGV[2] then
  return 0
end
redis.call('DEL', KEYS[2], KEYS[3])
redis.call('SET', KEYS[1], ARGV[1])
return 1`

// Restore makes a node forget its set, as Forget does, and makes it a member of another one in one step: so no client tells
// it another description in between. told is what the node is to keep, and before the text (Kept.String) that the operator
// has seen it keep. If it keeps another one, Restore changes nothing, and returns false. After an error, call it again.
func Restore(ctx context.Context, client *redis.Client, told wire.Kept, before string) (bool, error) {
	n, err := client.Eval(ctx, restore, []string{script.Told, script.Marker, script.Choice}, told.String(), before).Int()
	return n == 1, err
}
