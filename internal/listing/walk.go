package listing

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/dial"
	"github.com/quorumlock/redlock/internal/facts"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/wire"
)

const (
	// chunk is how many keys a SCAN looks at in a step, and how many locks the same step reads. Each takes a
	// node one to four microseconds, depending on whether the keys are in the processor's cache. While the server
	// resizes its table of keys, a SCAN may look at more.
	chunk = 8

	// few is how many members of a queue or a set are read together with its lock. A lock with members counts as
	// two of a chunk.
	few = 8

	// some is how many more members a step reads, if there are more: half a microsecond each.
	some = 32

	// share is the part of a node's time that a walk takes: the pause after a step is so many times as long as the
	// step took, by the node's clock. A node that is slow, or is interrupted, has the longer pauses, to which there is
	// a bound. With a hundredth, the slowest hundredth of another client's pings takes a few percent longer meanwhile
	// (docs/bench.md).
	share                       = 100
	shortestPause, longestPause = time.Millisecond, 50 * time.Millisecond

	// mostHolders is how many members of a set Inspect looks at (inspect.lua).
	mostHolders = 1000
)

// A walk goes through the keys of one node, for Find.
type walk struct {
	node   *Node
	index  int
	query  *Query
	found  *found
	client *redis.Client
	clock  time.Time // the node's, at the last step
	lost   bool      // the node does not answer, or refuses

	pattern pattern
	todo    []look // at locks that were found
}

// A look is one lock to read: its key, and what else to read of it.
type look struct {
	key        string
	queue, set bool // the lock's queue is read, too, and a set of holders
}

// Client returns a client for reading a node. Its calls end with their context, or when the node has not answered for
// patience. It uses one connection at a time, and sends no command again.
func Client(o *redis.Options, patience time.Duration) *redis.Client {
	own := *o
	own.PoolSize = 2 // one is used; with one, go-redis goes on dialing for a second after Close
	own.MinIdleConns, own.MaxRetries, own.DialerRetries, own.DisableIdentity = 0, -1, 1, true
	own.Protocol = 2 // in RESP3 scores are numbers outside of scripts, and text within
	own.ContextTimeoutEnabled, own.DialTimeout, own.ReadTimeout, own.WriteTimeout = true, patience, patience, patience
	own.Dialer = dial.Bounded(&own)
	return redis.NewClient(&own)
}

func newWalk(n *Node, index int, q *Query, f *found) *walk {
	return &walk{node: n, index: index, query: q, found: f, client: Client(n.Options, q.Patience)}
}

// run finds the locks on the node that match the pattern, and reads them. It returns early if the node is lost.
func (w *walk) run(ctx context.Context) {
	pattern, head, whole := parse(w.query.Pattern)
	if w.pattern = pattern; whole {
		w.want([]string{w.query.Prefix + head + script.QueueSuffix})
		w.again(ctx, nil)
		return
	}
	match := Escape(w.query.Prefix+head) + "*" // the keys of queues do not end as the pattern does
	for cursor := uint64(0); ; {
		var scan *redis.ScanCmd
		if !w.read(ctx, func(ctx context.Context, p redis.Pipeliner) { scan = p.Scan(ctx, cursor, match, chunk) }) {
			return
		}
		var keys []string
		keys, cursor = scan.Val()
		w.want(keys)
		if cursor == 0 {
			w.again(ctx, nil)
			return
		}
	}
}

// again reads the locks that are still to be read and, with queues, those of these names, which Find found not to be held.
func (w *walk) again(ctx context.Context, names []string) {
	for _, name := range names {
		w.todo = append(w.todo, look{key: w.query.Prefix + name, queue: true})
	}
	for len(w.todo) > 0 {
		if !w.read(ctx, nil) {
			return
		}
	}
}

// want takes the keys that a SCAN has found, and has their locks read if their names match, each once.
func (w *walk) want(keys []string) {
	w.found.mu.Lock()
	defer w.found.mu.Unlock()
	for _, key := range keys {
		key, queue, ok := script.LockOf(key)
		name, ours := strings.CutPrefix(key, w.query.Prefix)
		if !ok || !ours || name == "" || len(key) > redlock.MaxName || !w.pattern.matches(name) || !w.found.want(w.index, name, queue) {
			continue
		}
		w.todo = append(w.todo, look{key: key, queue: queue})
	}
}

// next removes from w.todo what one step can read, and returns it.
func (w *walk) next() []look {
	n, room := 0, chunk
	for ; n < len(w.todo) && room > 0; n++ {
		if room--; w.todo[n].queue || w.todo[n].set {
			room--
		}
	}
	now := w.todo[:n:n]
	w.todo = w.todo[n:]
	return now
}

// read sends, in one step, the commands of ask (nil: none) and those that read the next locks, and stores the answers.
// It returns false if the node is lost.
//
// Other clients' commands may come between these: a lock may change hands after its value was read, and before its TTL
// or its queue is. That does not matter more than that the other nodes are read at other moments, which the judgement
// allows for. So there is no script, which would cost a node twice as much, and no transaction.
func (w *walk) read(ctx context.Context, ask func(context.Context, redis.Pipeliner)) bool {
	looks := w.next()
	values := make([]*redis.StringCmd, len(looks)) // no more of each than a token can have
	lefts, queues, sets := make([]*redis.Cmd, len(looks)), make([]*redis.Cmd, len(looks)), make([]*redis.Cmd, len(looks))
	if !w.step(ctx, func(ctx context.Context, p redis.Pipeliner) {
		if ask != nil {
			ask(ctx, p)
		}
		if len(looks) == 0 {
			return
		}
		for i, l := range looks {
			values[i] = p.GetRange(ctx, l.key, 0, wire.MostOfToken-1)
			lefts[i] = p.Do(ctx, "PTTL", l.key)
			if l.queue {
				queues[i] = p.Do(ctx, "ZRANGE", l.key+script.QueueSuffix, 0, few-1, "WITHSCORES")
			}
			if l.set {
				sets[i] = p.Do(ctx, "ZRANGE", l.key, 0, few-1, "WITHSCORES")
			}
		}
	}) {
		return false
	}
	at := w.clock.UnixMicro() // before members goes on
	var all []read
	for i, l := range looks {
		r := read{key: l.key, whole: l.queue, time: at, queue: []any{}, members: []any{}}
		r.pttl, _ = lefts[i].Int64()
		is := values[i].Err() == nil
		if r.holder = values[i].Val(); !is && r.pttl >= 0 && !l.set {
			l.set = true
			w.todo = append(w.todo, l)
			continue
		}
		if r.pttl == -2 {
			r.holder = "" // it has ended since
		}
		if l.queue && !w.members(ctx, queues[i], l.key+script.QueueSuffix, &r.queue, 1<<30) {
			r.strange, r.queue = true, []any{}
		}
		if l.set && !is && !w.members(ctx, sets[i], l.key, &r.members, mostHolders) {
			r.pttl = -1
		}
		if w.lost {
			return false
		}
		all = append(all, r)
	}
	w.keep(all)
	return true
}

// A read is what the node has said of one lock.
type read struct {
	key            string
	whole          bool // with its queue
	holder         string
	pttl           int64 // -1: it is no lock
	time           int64 // the node's, in microseconds
	queue, members []any
	strange        bool // another program has a value where its queue would be
}

// members appends the members of the sorted set at key to into: those in first, the reply to a ZRANGE, and the others,
// which it reads in further steps, up to most in all. False: the node is lost, or another program's value is there.
func (w *walk) members(ctx context.Context, first *redis.Cmd, key string, into *[]any, most int) bool {
	part, err := first.Slice()
	if first, _ := append(part, nil)[0].(string); len(part) > 0 && !wire.Signed(first) {
		return false
	}
	for want := few; err == nil; {
		*into = append(*into, part...)
		from := want
		if want = min(want+some, most); len(*into) < 2*from || from == most {
			return true
		}
		var next *redis.Cmd
		if !w.step(ctx, func(ctx context.Context, p redis.Pipeliner) {
			next = p.Do(ctx, "ZRANGE", key, from, want-1, "WITHSCORES")
		}) {
			return false
		}
		part, err = next.Slice()
	}
	return false
}

// keep stores what the node has said of some locks in w.found.
func (w *walk) keep(all []read) {
	w.found.mu.Lock()
	defer w.found.mu.Unlock()
	for i := range all {
		name := strings.TrimPrefix(all[i].key, w.query.Prefix)
		l := w.found.named[name]
		r := &l.at[w.index]
		if r.queued && !all[i].whole { // its queue was found since, and it is read with that
			continue
		}
		*r = reading{wanted: r.wanted, queued: r.queued}
		a := all[i].reply()
		r.strange = all[i].strange
		r.ttl, r.foreign = max(0, a.TTL), a.Status != wire.Granted
		if a.Holder != "" && l.token == "" {
			l.token = a.Holder
		}
		r.mine = a.Holder != "" && a.Holder == l.token
		if r.more = moreOf(&a); a.Holder != "" && !r.mine {
			r.more = cmp.Or(r.more, new(more))
			r.more.token = a.Holder
		}
	}
}

// reply returns what the node has said in the form of a reply of inspect.lua.
func (r *read) reply() wire.Reply {
	return wire.Parse(wire.Inspect, []any{r.holder, r.pttl, "", "", r.time, r.queue, r.members}, nil)
}

// Modes are the modes of holders, as the nodes store them.
var Modes = map[wire.Mode]redlock.Mode{
	wire.ModeS: redlock.ModeShared, wire.ModeSlots: redlock.ModeSlot, wire.ModeIX: redlock.ModeBelow, wire.ModeIS: redlock.ModeSharedBelow,
}

// moreOf returns what few locks have: holders other than an exclusive one, and waiters; nil: this lock has neither.
func moreOf(a *wire.Reply) *more {
	m := new(more)
	for _, h := range a.Holders {
		m.holders = append(m.holders, redlock.Holder{Token: h.Token, By: redlock.Identify(h.Token), Mode: Modes[h.Mode], TTL: h.TTL, Nodes: 1})
	}
	for _, e := range a.Queue {
		if e.Lives(a.Time) {
			by := e.By()
			m.waiting = append(m.waiting, redlock.Waiter{
				Waiter: e.Waiter, Owner: by.Owner, Trace: by.Trace,
				For: max(0, time.Duration(a.Time-e.Ticket)*time.Microsecond), Nodes: 1,
			})
		}
	}
	if len(m.holders)+len(m.waiting) == 0 {
		return nil
	}
	return m
}

// step sends the node the commands of ask in one pipeline, and pauses after the answers. It returns false, with w.lost
// set, if the node does not answer, or refuses. That a key has another type than expected is an answer.
func (w *walk) step(ctx context.Context, ask func(context.Context, redis.Pipeliner)) bool {
	asked := time.Now()
	limit, cancel := context.WithTimeout(ctx, w.query.Patience)
	pipe := w.client.Pipeline()
	begins := pipe.Time(limit)
	ask(limit, pipe)
	ends := pipe.Time(limit)
	answers, _ := pipe.Exec(limit)
	cancel()
	if ctx.Err() != nil {
		w.lost = true
		return false
	}
	for _, answer := range answers {
		err := answer.Err()
		if err == nil {
			continue
		}
		status := wire.Classify(err)
		if status == wire.Foreign {
			continue
		}
		if status == wire.Timeout || errors.Is(err, context.DeadlineExceeded) {
			status, err = wire.Timeout, nil
		}
		w.lose(status, facts.Discreet(err), time.Since(asked))
		return false
	}
	w.clock = begins.Val()
	pause := time.NewTimer(min(max(shortestPause, share*ends.Val().Sub(w.clock)), longestPause))
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-ctx.Done():
	}
	return true
}

// lose gives the node up: Node.Err gets the reason (why), the error, and how long the failed step took (after).
func (w *walk) lose(why wire.Status, err error, after time.Duration) {
	w.lost = true
	w.node.Err = &redlock.NodeError{Node: w.node.Name, Outcome: redlock.Outcome(why), Elapsed: after, Err: err}
}
