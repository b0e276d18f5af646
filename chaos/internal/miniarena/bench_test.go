package miniarena

import (
	"errors"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/testbed/memredis"
)

// A bench is one node, with a client that sends it by hand the requests of Lockers. The bench has a
// lock, "mine", and another client has one, "theirs".
type bench struct {
	*testing.T
	node   *node
	client *redis.Client
}

func onBench(t *testing.T, f func(*bench)) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{T: t, node: &node{Node: memredis.NewNode(0), seed: sim.Seed(1)}}
		defer b.node.Close()
		b.client = b.connect()
		defer b.client.Close()
		for _, s := range script.All("") {
			b.client.ScriptLoad(t.Context(), s.Source)
		}
		b.client.Set(t.Context(), "mine", "me", time.Minute)
		b.client.Set(t.Context(), "theirs", "them", time.Minute)
		f(b)
	})
}

func (b *bench) connect() *redis.Client {
	o := b.node.Options()
	o.Dialer = memredis.Quiet(o.Dialer)
	o.MaxRetries, o.Protocol, o.PoolSize = -1, 2, 1
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = time.Second, time.Second, time.Second
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClient(o)
}

func (b *bench) inject(f history.Fault, begin bool) {
	b.Helper()
	if !b.node.inject(f, begin, []string{"mine", "free"}) {
		b.Fatalf("%q is not known", f.Kind)
	}
	synctest.Wait() // until the client's side has noticed
	if runtime.GOOS == "windows" && slices.Contains([]history.FaultKind{history.Kill, history.Boot, history.Reset}, f.Kind) {
		_ = b.client.Close() // on Windows go-redis does not see that a pooled connection is closed, and fails once
		b.client = b.connect()
	}
}

func (b *bench) run(s script.Script, key string, args ...any) (any, error) {
	return b.client.EvalSha(b.Context(), s.Hash, []string{key}, append(args, "x", 0, script.Bucket(key))...).Result() // exclusive, no slot
}

// acquire is the script for nodes without markers.
var acquire = script.Acquire("")

// The proposed fence does not matter here, no request is too late, and there is no waiter.
func (b *bench) acquire(key string) (any, error) {
	return b.run(acquire, key, "me", 30000, 0, 0, "", 0, "", 0)
}

func (b *bench) extend(key string) (any, error) { return b.run(script.Extend, key, "me", 30000) }

func (b *bench) release(key string) (any, error) { return b.run(script.Release, key, "me") }

// granted reports whether this is a grant: a fence, and the node's time.
func granted(v any) bool {
	list, ok := v.([]any)
	if !ok || len(list) != 2 {
		return false
	}
	number, ok := list[0].(int64)
	return ok && number > 0
}

// says checks how an answer begins; "" is for no error.
func (b *bench) says(what string, v any, err error, want string) {
	b.Helper()
	got := ""
	if err != nil {
		got = err.Error()
	}
	if want == "" && err != nil || !strings.HasPrefix(got, want) {
		b.Errorf("%s: %v, %v; want %q", what, v, err, want)
	}
}

// answers checks the node's answers to all requests.
func (b *bench) answers(want string) {
	b.Helper()
	v, err := b.acquire("free")
	b.says("acquire", v, err, want)
	v, err = b.extend("mine")
	b.says("extend", v, err, want)
	v, err = b.acquire("theirs")
	b.says("acquire theirs", v, err, want)
	v, err = b.release("free")
	b.says("release", v, err, want)
}

func (b *bench) has(want ...string) {
	b.Helper()
	if got := b.node.Engine.Keys(); !slices.Equal(got, want) {
		b.Errorf("the keys are %q, want %q", got, want)
	}
}

// took checks how long something took.
func (b *bench) took(least, most time.Duration, f func()) {
	b.Helper()
	begin := time.Now()
	f()
	if d := time.Since(begin); d < least || d > most {
		b.Errorf("took %v, want %v to %v", d, least, most)
	}
}

// refusing tests a fault in which the node gives the same answer to everything.
func refusing(t history.FaultKind, want string) func(*bench) {
	return func(b *bench) {
		b.inject(history.Fault{Kind: t}, true)
		b.answers(want)
		b.client.Close()
		b.client = b.connect() // and on new connections
		b.answers(want)
		b.has("mine", "theirs")
		b.inject(history.Fault{Kind: t}, false)
		b.answers("")
	}
}

// cutting tests a fault in which replies do not come.
func cutting(t history.FaultKind, carriedOut, after bool) func(*bench) {
	return func(b *bench) {
		b.inject(history.Fault{Kind: t}, true)
		b.took(time.Second, time.Second, func() {
			v, err := b.acquire("free")
			if !isTimeout(err) {
				b.Errorf("acquire: %v, %v", v, err)
			}
		})
		holds := func(yes bool) {
			b.Helper()
			if got := slices.Contains(b.node.Engine.Keys(), "free"); got != yes {
				b.Errorf("the request was carried out: %v, want %v", got, yes)
			}
		}
		holds(carriedOut)
		b.inject(history.Fault{Kind: t}, false)
		holds(after)
		b.answers("")
	}
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

// answersOnce makes the node answer a request that changes nothing.
func (b *bench) answersOnce() {
	b.Helper()
	v, err := b.acquire("theirs")
	b.says("acquire theirs", v, err, "")
}

// counts makes the node count requests, and checks the counter.
func (b *bench) counts(want ...int) {
	b.Helper()
	for _, n := range want {
		got, err := b.client.Eval(b.Context(), "return redis.call('INCR', KEYS[1])", []string{"counter"}).Int()
		if got != n || err != nil {
			b.Errorf("the counter is at %d, %v; want %d", got, err, n)
		}
	}
}
