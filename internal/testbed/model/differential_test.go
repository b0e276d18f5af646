package model_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/testbed/model"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
	"github.com/quorumlock/redlock/internal/wire"
	"github.com/redis/go-redis/v9"
)

// A test of the library on the model is worth as much as the model is like a Redis. So the same
// sequences of steps go to a model node, to the scripts on a miniredis, and to the scripts on a real
// server, and all must give the same answers.

// A subject carries out steps. Its error is the node's.
type subject func(step) (any, error)

// name is that of the model node, and process the run_id that it has at first.
const name, process = "node0", "node0.0"

// place is where in a slot of time the messages of the model's process arrive; see together.
const place = model.Actors + model.Arrivals

// channel is the channel for messages to the waiters, which are all of one process.
const channel = script.WakeChannel + "process"

// An audience is the subscriber of that channel at one of the two, with the messages that it has
// received.
type audience struct {
	mu    sync.Mutex
	heard []string
	stop  func() // nil: it does not subscribe
}

func (a *audience) hear(message string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.heard = append(a.heard, message)
}

func (a *audience) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.heard)
}

// end ends the subscription, and gives the messages that were received.
func (a *audience) end() []string {
	if a.stop != nil {
		a.stop()
	}
	heard := a.heard
	a.heard, a.stop = nil, nil
	return heard
}

func modelSubject(t *testing.T) (n *model.Node, mark string, ours subject) {
	n = model.NewNode(sim.Seed(1), name, time.Nanosecond)
	l := n.Dial(model.NewHost(sim.Seed(1), "c1"), time.Second)
	first, err := l.Connect(t.Context(), wire.Hello{Marked: true})
	if err != nil {
		t.Fatal(err)
	}
	mark = first.Value
	join := func(hello wire.Hello) (any, error) {
		m, err := l.Join(hello)
		if err != nil {
			return nil, err
		}
		if hello.Marked {
			mark = m.Value
		}
		return []any{m.Value, m.Before, m.Now, m.Kept.String()}, nil
	}
	listener := new(audience)
	listen := func() {
		ctx, cancel := context.WithCancel(t.Context())
		ready, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			_ = n.Dial(model.NewHost(sim.Seed(1), "c2"), time.Second).Subscribe(ctx, channel, func() { close(ready) }, listener.hear)
		}()
		<-ready
		listener.stop = func() { cancel(); <-done }
	}
	return n, mark, func(s step) (any, error) {
		switch s.other {
		case "listen":
			if listener.stop == nil {
				listen()
			}
		case "heard":
			for tries := 0; listener.stop != nil && (tries == 0 || listener.count() < s.messages && tries < 5000); tries++ {
				time.Sleep(2 * model.Moment) // a message is under way for a moment
			}
			return listener.end(), nil
		case "foreign":
			n.Put(s.call.Keys[0])
		case "flush":
			n.Flush()
		case "flush counters":
			n.FlushCounters()
		case "flush scripts":
			n.FlushScripts()
		case "join":
			hello := s.while(mark)
			hello.Marked = true
			return join(hello)
		case "join unmarked":
			return join(wire.Hello{})
		case "mark":
			n.SetMarker(s.text)
		default:
			calls := []model.Call{s.marked(mark)}
			if err := l.Exec(calls); err != nil {
				t.Fatal(err)
			}
			if p := calls[0].Plain; p != nil {
				return plainSays{p, calls[0]}, nil
			}
			return calls[0].Value, calls[0].Err
		}
		return nil, nil
	}
}

// redisSubject returns a subject on a server that gets this marker, the model node's.
func redisSubject(t *testing.T, client *redis.Client, mark string) subject {
	ctx := context.Background()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(client.Set(ctx, script.Marker, mark, 0).Err())
	load := func(runID string) {
		for _, s := range script.All(runID) {
			must(client.ScriptLoad(ctx, s.Source).Err())
		}
	}
	load(process)
	join := func(keys []string, runID string, hello wire.Hello) (any, error) {
		text := ""
		if d := hello.Keep.Description; d != nil {
			text = d.Text()
		}
		v, err := client.Eval(ctx, script.Join, keys, runID, hello.Time, "", text, hello.Keep.Self, hello.While).Result()
		if err != nil {
			return nil, err
		}
		if len(keys) > 0 {
			mark = v.([]any)[0].(string)
		}
		load(runID)
		return v, nil
	}
	listener := new(audience)
	listen := func() {
		sub, done := client.Subscribe(ctx, channel), make(chan struct{})
		t.Cleanup(func() { _ = sub.Close() })
		_, err := sub.Receive(ctx)
		must(err)
		go func() {
			defer close(done)
			for {
				v, _ := sub.Receive(ctx)
				m, ok := v.(*redis.Message)
				if !ok {
					return // that was the last one
				}
				listener.hear(m.Payload)
			}
		}()
		listener.stop = func() {
			must(sub.Unsubscribe(ctx))
			<-done
			must(sub.Close())
		}
	}
	return func(s step) (v any, err error) {
		switch s.other {
		case "listen":
			if listener.stop == nil {
				listen()
			}
		case "heard":
			return listener.end(), nil
		case "foreign":
			if err = client.HSetNX(ctx, s.call.Keys[0], "field", "value").Err(); err != nil && redis.HasErrorPrefix(err, "WRONGTYPE") {
				err = nil // there is something already
			}
			must(err)
		case "flush":
			must(client.FlushAll(ctx).Err())
		case "flush counters":
			must(client.Del(ctx, script.Fences, script.Belows).Err())
		case "flush scripts":
			must(client.ScriptFlush(ctx).Err())
		case "join":
			return join([]string{script.Marker, script.Told, script.Choice}, process, s.while(mark))
		case "join unmarked":
			return join(nil, "", s.hello)
		case "mark":
			must(client.Set(ctx, script.Marker, s.text, 0).Err())
		default:
			v, err = ask(client, s.marked(mark))
			var said redis.Error
			if err != nil && !errors.As(err, &said) {
				t.Fatal(err)
			}
			return v, err
		}
		return nil, nil
	}
}

// ask makes a server carry out a call, as the library would.
func ask(client *redis.Client, c model.Call) (any, error) {
	ctx, marked := context.Background(), c.Keys
	if c.Mark != "" {
		marked = append(slices.Clone(c.Keys), script.Marker)
	}
	ttl, lease := c.TTL.Milliseconds(), c.Lease.Milliseconds()
	run := func(hash string, keys []string, args ...any) (any, error) {
		return client.EvalSha(ctx, hash, keys, args...).Result()
	}
	numbered := func(args ...any) []any {
		for _, key := range c.Keys {
			args = append(args, script.Bucket(key))
		}
		return args
	}
	switch c.Op {
	case wire.Acquire:
		return run(script.Acquire(wire.RunID(c.Mark)).Hash, c.Keys, numbered(c.Token, ttl, c.Fence, c.Latest, c.Mark, c.Ticket, c.Waiter, lease, c.Modes, c.Slots)...)
	case wire.Raise:
		return run(script.Raise.Hash, c.Keys, numbered(c.Token, c.Fence, c.Modes)...)
	case wire.Extend:
		return run(script.Extend.Hash, c.Keys, c.Token, ttl, c.Modes)
	case wire.Release:
		return run(script.Release.Hash, c.Keys, c.Token, c.Modes, c.Slot)
	case wire.Yield:
		return run(script.Yield.Hash, c.Keys, c.Token, c.Ticket, c.Waiter, lease, c.Latest, c.Modes, c.Slot)
	case wire.Break:
		return client.Eval(ctx, script.Break, c.Keys, c.Token, c.Modes, c.Slot, c.Broken.Milliseconds()).Result()
	case wire.Leave:
		return run(script.Leave.Hash, c.Keys, c.Waiter, c.Ticket, c.Modes)
	case wire.Inspect:
		return run(script.Inspect.Hash, append(c.Keys[:1:1], marked[len(c.Keys):]...), script.Bucket(c.Keys[0]))
	case wire.Plain:
		return askPlain(client, c)
	case wire.Choose:
		return client.Eval(ctx, script.Choose, []string{script.Told, script.Choice}, append(anys(c.Args), c.Mark)...).Result()
	case wire.Merge:
		return client.Eval(ctx, script.Merge, []string{script.Fences, script.Belows}, anys(c.Args)...).Result()
	case wire.Wake:
		return client.Eval(ctx, script.Wake, c.Keys[:1]).Result()
	}
	return client.Do(ctx, "set", c.Keys[0], c.Token, "nx", "px", ttl).Result()
}

func anys(texts []string) (all []any) {
	for _, text := range texts {
		all = append(all, text)
	}
	return all
}

// askPlain makes a server carry out an acquire of plain commands. It reads the replies to the trailer as
// the library does not: with the client's own types.
func askPlain(client *redis.Client, c model.Call) (any, error) {
	ctx, key := context.Background(), c.Keys[0]
	pipe := client.Pipeline()
	set := pipe.Do(ctx, "set", key, c.Token, "nx", "px", c.TTL.Milliseconds())
	advanced := pipe.Do(ctx, "zadd", script.Fences, "gt", "ch", c.Fence, *script.Bucket(key))
	holder := pipe.Get(ctx, key)
	queues := pipe.Exists(ctx, key+script.QueueSuffix)
	marks := pipe.MGet(ctx, script.Marker)
	now := pipe.Time(ctx)
	known := pipe.ScriptExists(ctx, script.Acquire(wire.RunID(c.Mark)).Hash)
	_, _ = pipe.Exec(ctx) // each command has its own error
	said := func(err error) error {
		if err == redis.Nil {
			return nil
		}
		return err
	}
	p := &wire.PlainAnswer{Set: set.Val() == "OK", Refused: said(set.Err()), Holder: holder.Val(), Queues: queues.Val(), Trailer: new(wire.Trailer)}
	p.Advanced, _ = advanced.Val().(int64)
	p.Err = cmp.Or(said(advanced.Err()), said(holder.Err()), said(queues.Err()))
	p.Failed = cmp.Or(said(marks.Err()), said(now.Err()), said(known.Err()))
	if p.Failed == nil {
		p.Marker, _ = marks.Val()[0].(string)
		p.Time = now.Val().UnixMicro()
		if known.Val()[0] {
			p.Known = 1
		}
	}
	return plainSays{p, c}, nil
}

// compare makes the model and a server carry out the same steps, and counts the kinds of answers. If
// the answer is NOSCRIPT, both join again, which loads the scripts and sets the marker, as the library
// does.
func compare(t *testing.T, all []step, f formatter, n *model.Node, ours, real subject, seen map[string]int) {
	t.Helper()
	last := make(map[string]int64)
	begin, at := time.Now(), time.Duration(0)
	for i := range all {
		at += all[i].pause
		time.Sleep(time.Until(begin.Add(at)))
		if f.exact {
			together()
		}
		if do := all[i].do; do != nil {
			do()
			continue
		}
		holder := all[i].holder(n)
		s := all[i].now(time.Now(), last[all[i].key()], holder)
		all[i] = s
		for again := true; again; {
			theirs, theirErr := real(s) // first: it takes no time in a bubble
			if heard, ok := theirs.([]string); ok {
				s.messages = len(heard)
			}
			v, err := ours(s)
			if a, b := f.format(&s.call, v, err), f.format(&s.call, theirs, theirErr); a != b {
				t.Fatalf("step %d, %v: the model says %q, the server %q; the steps:\n%s", i, s, a, b, tell(all[:i+1]))
			}
			count(seen, s, v, err)
			note(last, s, v)
			again = err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT")
			if s.other = "join"; s.mark == "" {
				s.other = "join unmarked"
			}
			if again && f.exact {
				together()
			}
		}
	}
}

// together waits for an instant at which a step of the model falls into the same microsecond as one of
// the miniredis. A model node carries out a message at its place in a slot of time, a miniredis at
// once.
func together() {
	for ok := false; !ok; ok = time.Now().UnixNano()%1000 < 900 {
		model.SleepTo(time.Now().Add(time.Nanosecond), place-50)
	}
}

// sequences tries those that are written down, and n pairs of drawn ones; virtual as with steps.
func sequences(try func([]step), seen map[string]int, virtual bool, n int) {
	for _, story := range scripted(virtual) {
		try(story)
	}
	drawn(seen)
	for seed := range n {
		try(steps(rand.New(rand.NewPCG(uint64(seed), 0)), virtual))
		try(turns(rand.New(rand.NewPCG(uint64(seed), 1)), virtual))
	}
}

// TestModelIsLikeMiniredis: random sequences of steps have the same answers from a model node and from the scripts on
// miniredis.
func TestModelIsLikeMiniredis(t *testing.T) {
	seen := make(map[string]int)
	try := func(all []step) {
		synctest.Test(t, func(t *testing.T) {
			client := redistest.NewBubble(t, 1).Client(0)
			n, mark, ours := modelSubject(t)
			compare(t, all, formatter{exact: true}, n, ours, redisSubject(t, client, mark), seen)
		})
	}
	sequences(try, seen, true, need.Sized(5, 100, 5000))
	if need.Sized(false, true, true) { // in fewer sequences some answers are too rare
		wantSeen(t, seen)
	}
}

// TestModelIsLikeRedis: the same against a real server.
func TestModelIsLikeRedis(t *testing.T) {
	client := redistest.Clients(t, redistest.Servers(t, 1))[0]
	seen := make(map[string]int)
	try := func(all []step) {
		client.FlushAll(t.Context())
		client.ScriptFlush(t.Context())
		n, mark, ours := modelSubject(t)
		compare(t, all, formatter{}, n, ours, redisSubject(t, client, mark), seen)
	}
	sequences(try, seen, false, need.Sized(30, 60, 1000))
	wantSeen(t, seen)
}

// TestClampIsLikeRedis: fences that are far from the node's time. The model and a real server cannot be
// asked for them at the same instant, so each answer is compared with its own time.
func TestClampIsLikeRedis(t *testing.T) {
	client := redistest.Clients(t, redistest.Servers(t, 1))[0]
	_, mark, ours := modelSubject(t)
	const clamp = 500_000
	for i, tt := range []struct{ proposed, off int64 }{
		{0, -clamp}, {-1, -clamp}, {1, -clamp}, {math.MinInt64, -clamp},
		{1 << 53, clamp}, {math.MaxInt64, clamp},
	} {
		for who, subject := range map[string]subject{"model": ours, "server": redisSubject(t, client, mark)} {
			s := step{call: model.Call{Op: wire.Acquire, Keys: []string{fmt.Sprint(i)}, Modes: "x", Token: "token", TTL: time.Hour, Fence: tt.proposed}, mark: "right"}
			from := time.Now().UnixMicro()
			v, err := subject(s)
			to := time.Now().UnixMicro()
			if list, ok := v.([]any); !ok || len(list) != 2 || list[0].(int64) < from+tt.off || list[0].(int64) > to+tt.off {
				t.Errorf("%d is proposed between %d and %d: the %s says %v, %v", tt.proposed, from, to, who, v, err)
			}
		}
	}
}

// TestRefusalsAreLikeRedis: what a full or read-only server still does.
func TestRefusalsAreLikeRedis(t *testing.T) {
	client := redistest.Clients(t, redistest.Servers(t, 1))[0]
	set := func(key, value string) {
		if err := client.ConfigSet(t.Context(), key, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	replicaOf := func(host, port string) {
		if err := client.ReplicaOf(t.Context(), host, port).Err(); err != nil {
			t.Fatal(err)
		}
	}
	call := func(op wire.Op, key, token string) step {
		c := model.Call{Op: op, Keys: []string{key}, Modes: "x", Token: token, TTL: time.Hour}
		if key == "read" {
			c.Modes = "s"
		}
		switch op {
		case wire.Choose:
			c.Args = []string{"1", ballot(2), described("S", 1).Text(), ""}
		case wire.Merge:
			c.Args = []string{"1", "7", *script.Bucket(key)}
		}
		return step{call: c, fence: time.Second / 4, mark: "right"}
	}
	as := func(n int64, s step) step {
		s.call.Waiter, s.call.Ticket = fmt.Sprint("process.", n), 1e15+n
		s.call.Lease, s.latest = 3*time.Second, time.Minute
		return s
	}
	for _, trouble := range []struct {
		name       string
		begin, end func(*model.Node)
	}{
		{"full", func(n *model.Node) { set("maxmemory", "1"); n.Full(true) }, func(n *model.Node) { set("maxmemory", "0"); n.Full(false) }},
		{"read-only", func(n *model.Node) { replicaOf("127.0.0.1", "1"); n.ReadOnly(true) },
			func(n *model.Node) { replicaOf("NO", "ONE"); n.ReadOnly(false) }},
	} {
		t.Run(trouble.name, func(t *testing.T) {
			node, mark, ours := modelSubject(t)
			real := redisSubject(t, client, mark)
			begin, end := step{do: func() { trouble.begin(node) }}, step{do: func() { trouble.end(node) }}
			all := []step{
				{other: "flush"}, {other: "join"},
				call(wire.Acquire, "mine", "token.1.@a@@"), call(wire.Acquire, "yours", "token.2.@a@@"),
				call(wire.Acquire, "read", "token.1.@a@@"), call(wire.Acquire, "read", "token.2.@a@@"),
				{other: "foreign", call: model.Call{Keys: []string{"foreign"}}}, {other: "listen"},
			}
			waited := []string{"to release", "to yield", "to ask for", "to take", "to leave"}
			for i, key := range waited {
				all = append(all, call(wire.Acquire, key, "token.1.@a@@"), as(1, call(wire.Acquire, key, "token.2.@a@@")), as(2, call(wire.Acquire, key, "token.3.@a@@")))
				if i >= 3 {
					all = append(all, call(wire.Release, key, "token.1.@a@@"), call(wire.Inspect, key, ""))
				}
			}
			all = append(all, begin, step{other: "join"},
				call(wire.Release, "to release", "token.1.@a@@"),
				as(3, call(wire.Yield, "to yield", "token.1.@a@@")), as(1, call(wire.Acquire, "to ask for", "token.2.@a@@")), as(3, call(wire.Acquire, "to ask for", "token.2.@a@@")),
				as(2, call(wire.Acquire, "to take", "token.3.@a@@")), as(1, call(wire.Acquire, "to take", "token.2.@a@@")),
				as(1, call(wire.Leave, "to leave", "")), as(9, call(wire.Leave, "to leave", "")))
			for _, key := range waited {
				all = append(all, call(wire.Inspect, key, ""))
			}
			all = append(all, step{other: "heard"})
			for _, key := range []string{"mine", "yours", "nobody's", "foreign", "read"} {
				for op := range wire.Set + 1 {
					all = append(all, call(op, key, "token.1.@a@@"))
				}
				late, older := call(wire.Acquire, key, "token.1.@a@@"), call(wire.Acquire, key, "token.1.@a@@")
				late.latest, older.mark = -time.Minute, "older"
				all = append(all, late, older)
			}
			compare(t, append(all, end), formatter{}, node, ours, real, make(map[string]int))
			// This comes last, since a connection is unusable after a join that failed.
			compare(t, []step{{other: "flush"}, begin, {other: "join"}, end}, formatter{}, node, ours, real, make(map[string]int))
		})
	}
}
