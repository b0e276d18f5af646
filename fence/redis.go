package fence

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// field is the field of a hash that has the largest fence.
const field = "fence"

// A Script is a Lua script for a Redis that runs only if the fence that it is given is not stale. The fence is
// stored in the field "fence" of the hash KEYS[1], in the same step.
//
// The Redis may be any, also one of the lock's nodes, or a cluster if all keys of a call are in one slot. It must
// keep the hash: maxmemory-policy is noeviction, the key has no TTL, and the Redis is persistent. A Redis that
// forgets the number accepts every holder again; so it is best kept with the data, in one hash.
type Script struct{ script *redis.Script }

// NewScript returns a Script of Lua code. In the code, KEYS[1] is the hash, KEYS[2] and on are other keys, ARGV[1] is
// the fence, and ARGV[2] and on are the arguments of Run. Functions that the code defines must be local.
func NewScript(code string) *Script {
	return &Script{redis.NewScript(`
local largest = redis.call('HGET', KEYS[1], 'fence')
if largest and tonumber(ARGV[1]) < tonumber(largest) then
	return redis.error_reply('STALE a later holder of the lock has been here')
end
redis.call('HSET', KEYS[1], 'fence', ARGV[1])
` + code)}
}

// Run runs the script. keys begin with the hash. The error of the reply is [ErrStale] if the hash has a larger fence:
// then the code did not run. Other errors are those of Redis or of the network; redis.Nil if the code returns nil; or
// say which argument is not allowed. ctx and the client's options bound the call. go-redis may send it twice when a
// reply is lost, unless MaxRetries is -1: the code must bear that, as setting a value does. client must not be a
// pipeline, whose errors come later.
func (s *Script) Run(ctx context.Context, client redis.Scripter, keys []string, fence int64, args ...any) *redis.Cmd {
	key := ""
	if len(keys) > 0 {
		key = keys[0]
	}
	if err := checkNamed("key", key, fence); err != nil {
		cmd := redis.NewCmd(ctx)
		cmd.SetErr(err)
		return cmd
	}
	cmd := s.script.Run(ctx, client, keys, append([]any{fence}, args...)...)
	if redis.HasErrorPrefix(cmd.Err(), "STALE") {
		cmd.SetErr(stale(key, fence))
	}
	return cmd
}

// Each pair has a call of its own: a call with thousands of arguments is too much for Lua.
var hset = NewScript(`
for i = 2, #ARGV, 2 do
	redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
end
return 'OK'
`)

var hgetall = NewScript(`return redis.call('HGETALL', KEYS[1])`)

// HSet sets fields of a hash, and stores the fence in its field "fence", in one step; [Script] says what the Redis must
// be. It returns [ErrStale] if the hash has a larger fence, and an error of Redis or of the network, after which the
// fields may be set or not. values must not have the field "fence".
func HSet(ctx context.Context, client redis.Scripter, key string, fence int64, values map[string]string) error {
	args := make([]any, 0, 2*len(values))
	for name, value := range values {
		if name == field {
			return inputError(`values have the field "fence", which is for the fence of the lock`)
		}
		args = append(args, name, value)
	}
	return hset.Run(ctx, client, []string{key}, fence, args...).Err()
}

// HGetAll returns the fields of a hash, without the fence, and stores the fence in the hash: earlier holders are
// rejected from now on. If there is no hash, the map is empty, and the hash has a fence from then on. Its errors
// are those of [HSet].
func HGetAll(ctx context.Context, client redis.Scripter, key string, fence int64) (map[string]string, error) {
	pairs, err := hgetall.Run(ctx, client, []string{key}, fence).StringSlice()
	if err != nil {
		return nil, err
	}
	values := make(map[string]string, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		values[pairs[i]] = pairs[i+1]
	}
	delete(values, field)
	return values, nil
}
