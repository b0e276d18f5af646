package fresh

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/wire"
)

// restore makes a node keep a description, whatever it has kept.
//
// KEYS[1]  what the node keeps of its set
// KEYS[2]  the marker
// KEYS[3]  the choice of the next description
// ARGV[1]  what it is to keep
// ARGV[2]  what it has kept until now
// reply    1, also if it does that already: the command may be sent again; or 0: it keeps something else by now
//
// The marker goes first: if the script ends half-way, the node counts as emptied.
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

// Restore makes a node forget to which set it belongs, as Forget does, and makes it a member of another one in the same
// step: so no client tells it something else in between. It is for an operator who says which nodes a set has, and has
// seen what this one keeps. It reports false, and changes nothing, if the node keeps something else by now.
func Restore(ctx context.Context, client *redis.Client, told wire.Kept, before string) (bool, error) {
	n, err := client.Eval(ctx, restore, []string{script.Told, script.Marker, script.Choice}, told.String(), before).Int()
	return n == 1, err
}
