package recipes

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// fenced reads or writes a hash with the fields fence and value.
//
// KEYS[1]  the hash
// ARGV[1]  the caller's number
// ARGV[2]  and on: fields and values to write; to read, none
//
// The reply is the value, or an error that begins with STALE. It is one script, so that
// nothing comes between the check of the number and the write, and one key, so that the
// number is lost only with the value.
var fenced = redis.NewScript(`
local largest = redis.call('HGET', KEYS[1], 'fence')
if largest and tonumber(ARGV[1]) < tonumber(largest) then
	return redis.error_reply('STALE a later holder of the lock has been here')
end
redis.call('HSET', KEYS[1], 'fence', ARGV[1], unpack(ARGV, 2))
return redis.call('HGET', KEYS[1], 'value')
`)

// ReadHash reads a value, and makes it reject all earlier holders from now on. The error
// is redis.Nil if there is no value yet.
func ReadHash(ctx context.Context, client redis.Scripter, key string, fence int64) (value string, err error) {
	value, err = fenced.Run(ctx, client, []string{key}, fence).Text()
	if redis.HasErrorPrefix(err, "STALE") {
		return "", ErrStale
	}
	return value, err
}

// WriteHash writes a value.
func WriteHash(ctx context.Context, client redis.Scripter, key string, fence int64, value string) error {
	err := fenced.Run(ctx, client, []string{key}, fence, "value", value).Err()
	if redis.HasErrorPrefix(err, "STALE") {
		return ErrStale
	}
	return err
}
