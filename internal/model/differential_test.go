package model_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/internal/model"
	"github.com/quorumlock/redlock/internal/redistest"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/seam"
	"github.com/quorumlock/redlock/internal/seed"
	"github.com/redis/go-redis/v9"
)

// What a model says of the library is worth as much as the model is like a Redis.
// So the same sequences of steps go to a model node, to the scripts on a
// miniredis, and to the scripts on a real server, and all must say the same.

func TestMain(m *testing.M) { redistest.NoLeaksMain(m) }

// A step is a call of a script, or something else that happens to the node.
type step struct {
	call  seam.Call
	other string // "foreign", "flush", "flush scripts"; or "": the call
	pause time.Duration
}

func (s step) String() string {
	if s.other != "" {
		return s.other + " " + s.call.Key
	}
	return fmt.Sprintf("%v %s %s %v", s.call.Op, s.call.Key, s.call.Token, s.call.TTL)
}

// steps draws a sequence. Steps are at whole multiples of 10 ms and keys expire
// between them, for a miniredis does not round to milliseconds as Redis does.
func steps(rng *rand.Rand, pauses bool) (all []step) {
	for range 40 {
		s := step{call: seam.Call{
			Op:    seam.Op(rng.IntN(3)),
			Key:   string(rune('a' + rng.IntN(2))),
			Token: fmt.Sprintf("token.%d", rng.IntN(3)),
			TTL:   time.Duration(rng.IntN(8))*10*time.Millisecond + 15*time.Millisecond,
		}}
		if !pauses {
			s.call.TTL += time.Hour
		}
		switch rng.IntN(20) {
		case 0:
			s.other = "foreign"
		case 1:
			s.other = "flush"
		case 2:
			s.other = "flush scripts"
		}
		if pauses {
			s.pause = time.Duration(rng.IntN(4)) * 10 * time.Millisecond
		}
		all = append(all, s)
	}
	return all
}

// A subject carries out steps and says what came of them, in words.
type subject func(step) string

// outcome puts a reply into words. The milliseconds that are left are not what is
// compared between clocks, only whether there are any.
func outcome(v any, err error) string {
	switch {
	case err != nil:
		word, _, _ := strings.Cut(err.Error(), " ")
		return word
	default:
		if list, ok := v.([]any); ok && len(list) == 2 {
			if ms, ok := list[0].(int64); ok && ms > 0 {
				return fmt.Sprintf("%v, with time left", list[1])
			}
		}
		return fmt.Sprintf("%T %v", v, v)
	}
}

func modelSubject(t *testing.T) subject {
	n := model.NewNode(seed.Seed(1), "node0", time.Nanosecond)
	l := n.Dial(model.NewHost(seed.Seed(1), "c1"), time.Second)
	if _, err := l.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	return func(s step) string {
		switch s.other {
		case "foreign":
			n.Put(s.call.Key)
		case "flush":
			n.Flush()
		case "flush scripts":
			n.FlushScripts()
		default:
			calls := []seam.Call{s.call}
			if err := l.Exec(calls); err != nil {
				t.Fatal(err)
			}
			if calls[0].Err != nil && strings.HasPrefix(calls[0].Err.Error(), "NOSCRIPT") {
				if err := l.Load(); err != nil {
					t.Fatal(err)
				}
			}
			return outcome(calls[0].Value, calls[0].Err)
		}
		return ""
	}
}

func redisSubject(t *testing.T, client *redis.Client) subject {
	ctx := context.Background()
	load := func() {
		for _, s := range script.All {
			if err := client.ScriptLoad(ctx, s.Source).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	load()
	hashes := [...]string{seam.Acquire: script.Acquire.Hash, seam.Extend: script.Extend.Hash, seam.Release: script.Release.Hash}
	return func(s step) string {
		var err error
		switch s.other {
		case "foreign":
			if err = client.HSetNX(ctx, s.call.Key, "field", "value").Err(); err != nil && redis.HasErrorPrefix(err, "WRONGTYPE") {
				err = nil // there is something already
			}
		case "flush":
			err = client.FlushAll(ctx).Err()
		case "flush scripts":
			err = client.ScriptFlush(ctx).Err()
		default:
			args := []any{s.call.Token, s.call.TTL.Milliseconds()}
			if s.call.Op == seam.Release {
				args = args[:1]
			}
			v, err := client.EvalSha(ctx, hashes[s.call.Op], []string{s.call.Key}, args...).Result()
			var said redis.Error
			if err != nil && !errors.As(err, &said) {
				t.Fatal(err)
			}
			if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
				load()
			}
			return outcome(v, err)
		}
		if err != nil {
			t.Fatal(err)
		}
		return ""
	}
}

// compare has two subjects carry out the same steps.
func compare(t *testing.T, all []step, one, other subject) {
	t.Helper()
	start := time.Now()
	at := time.Duration(0)
	for i, s := range all {
		at += s.pause
		if s.pause > 0 {
			time.Sleep(time.Until(start.Add(at)))
		}
		if a, b := one(s), other(s); a != b {
			t.Fatalf("step %d, %v: the model says %q, the server %q; the steps: %v", i, s, a, b, all[:i+1])
		}
	}
}

func TestModelIsLikeMiniredis(t *testing.T) {
	for n := range 300 {
		synctest.Test(t, func(t *testing.T) {
			client := redistest.NewBubble(t, 1).Client(0)
			compare(t, steps(rand.New(rand.NewPCG(uint64(n), 0)), true), modelSubject(t), redisSubject(t, client))
		})
	}
}

// Real time would have to be waited for, so nothing expires here.
func TestModelIsLikeRedis(t *testing.T) {
	client := redistest.Clients(t, redistest.Servers(t, 1))[0]
	for n := range 40 {
		client.FlushAll(t.Context())
		compare(t, steps(rand.New(rand.NewPCG(uint64(n), 0)), false), modelSubject(t), redisSubject(t, client))
	}
}

// TestRefusalsAreLikeRedis: what a server that is full, or read-only, still does.
func TestRefusalsAreLikeRedis(t *testing.T) {
	client := redistest.Clients(t, redistest.Servers(t, 1))[0]
	real := redisSubject(t, client)
	node := model.NewNode(seed.Seed(1), "node0", time.Nanosecond)
	link := node.Dial(model.NewHost(seed.Seed(1), "c1"), time.Second)
	if _, err := link.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	ours := func(s step) string {
		calls := []seam.Call{s.call}
		if err := link.Exec(calls); err != nil {
			t.Fatal(err)
		}
		return outcome(calls[0].Value, calls[0].Err)
	}
	set := func(key, value string) {
		if err := client.ConfigSet(t.Context(), key, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	call := func(op seam.Op, key, token string) step {
		return step{call: seam.Call{Op: op, Key: key, Token: token, TTL: time.Hour}}
	}
	for _, trouble := range []struct {
		name       string
		begin, end func()
	}{
		{"full", func() { set("maxmemory", "1"); node.Full(true) }, func() { set("maxmemory", "0"); node.Full(false) }},
		{"read-only", func() {
			if err := client.ReplicaOf(t.Context(), "127.0.0.1", "1").Err(); err != nil {
				t.Fatal(err)
			}
			node.ReadOnly(true)
		}, func() {
			if err := client.ReplicaOf(t.Context(), "NO", "ONE").Err(); err != nil {
				t.Fatal(err)
			}
			node.ReadOnly(false)
		}},
	} {
		for _, s := range []step{call(seam.Acquire, "mine", "token.1"), call(seam.Acquire, "yours", "token.2")} {
			if a, b := ours(s), real(s); a != b {
				t.Fatalf("%s: %v: the model says %q, the server %q", trouble.name, s, a, b)
			}
		}
		trouble.begin()
		for _, op := range []seam.Op{seam.Acquire, seam.Extend, seam.Release} {
			for _, key := range []string{"mine", "yours", "nobody's"} {
				s := call(op, key, "token.1")
				if a, b := ours(s), real(s); a != b {
					t.Errorf("%s: %v: the model says %q, the server %q", trouble.name, s, a, b)
				}
			}
		}
		trouble.end()
		client.FlushAll(t.Context())
		node.Flush()
	}
}
