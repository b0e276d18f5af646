package fence

import (
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

func startRedis(t *testing.T) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestHash(t *testing.T) {
	ctx, client := t.Context(), startRedis(t)
	read := func(fence int64, want map[string]string) {
		t.Helper()
		if got, err := HGetAll(ctx, client, "h", fence); err != nil || !maps.Equal(got, want) {
			t.Errorf("fence %d reads %v, %v, want %v", fence, got, err, want)
		}
	}
	read(5, nil)
	if err := HSet(ctx, client, "h", 4, map[string]string{"a": "late"}); !errors.Is(err, ErrStale) || err.Error() != "h: fence 4: "+ErrStale.Error() {
		t.Errorf("after a read: %v", err)
	}
	if err := HSet(ctx, client, "h", 5, map[string]string{"a": "1", "b": "2"}); err != nil {
		t.Error(err)
	}
	if err := HSet(ctx, client, "h", 10, nil); err != nil {
		t.Error(err)
	}
	if _, err := HGetAll(ctx, client, "h", 9); !errors.Is(err, ErrStale) {
		t.Errorf("a stale read: %v", err)
	}
	read(10, map[string]string{"a": "1", "b": "2"})

	many := make(map[string]string)
	for i := range 10_000 { // more than Lua takes in one call
		many[fmt.Sprint(i)] = "x"
	}
	if err := HSet(ctx, client, "many", 1, many); err != nil {
		t.Error(err)
	}
	if got, err := HGetAll(ctx, client, "many", 1); err != nil || !maps.Equal(got, many) {
		t.Errorf("%d fields, %v", len(got), err)
	}

	refused(t, "HSet", HSet(ctx, client, "h", 11, map[string]string{"fence": "1"}), `the field "fence"`)
	for _, in := range inputs {
		refused(t, "HSet", HSet(ctx, client, in.name, in.fence, nil), in.says)
	}
	if err := client.Set(ctx, "text", "a", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := HSet(ctx, client, "text", 1, nil); err == nil || errors.Is(err, ErrStale) {
		t.Errorf("of a key that is no hash: %v", err)
	}
}

func TestScript(t *testing.T) {
	ctx, client := t.Context(), startRedis(t)
	add := NewScript(`
local sum = redis.call('INCRBY', KEYS[2], ARGV[2])
if sum == 0 then return false end
return sum`)
	keys := []string{"{a}:fence", "{a}:sum"}
	if sum, err := add.Run(ctx, client, keys, 7, 5).Int(); err != nil || sum != 5 {
		t.Errorf("got %d, %v", sum, err)
	}
	if err := add.Run(ctx, client, keys, 6, 5).Err(); !errors.Is(err, ErrStale) {
		t.Errorf("a stale one: %v", err)
	}
	if err := add.Run(ctx, client, keys, 7, -5).Err(); !errors.Is(err, redis.Nil) {
		t.Errorf("a reply of nil: %v", err)
	}
	refused(t, "Run", add.Run(ctx, client, nil, 7).Err(), "the key of the resource is empty")
	_ = client.Close()
	if err := add.Run(ctx, client, keys, 6, 5).Err(); !errors.Is(err, redis.ErrClosed) {
		t.Errorf("of a client that is closed: %v", err)
	}
}
