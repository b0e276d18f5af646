package listing

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/facts"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/wire"
)

const (
	// chunk is how many keys a SCAN looks at, and how many locks the script reads: each takes a node one
	// to three microseconds a key, depending on whether the keys are in the processor's cache. While the
	// server resizes its table of keys, a SCAN may look at more.
	chunk = 32

	// some is how many members of queues and sets the script reads, of one and of all: half a
	// microsecond each. It reads the last one to its end, so there may be three times as many.
	some = 32

	// mostHolders is how many members of a set Inspect looks at (inspect.lua).
	mostHolders = 1000
)

// A walk goes through the keys of one node.
type walk struct {
	node   *Node
	index  int
	query  *Query
	found  *found
	client *redis.Client
	script *redis.Script
	began  time.Time     // when all walks did
	offset time.Duration // of this node's turn
	lost   bool          // the node does not answer, or refuses

	pattern       pattern
	queued, plain []string // keys to read: with their queues, and without
}

// Client is a client that looks at a node, over one connection. It goes by the deadline of its calls, waits for
// patience at the longest, and does not try again.
func Client(o *redis.Options, patience time.Duration) *redis.Client {
	own := *o
	own.PoolSize = 2 // one is used; with one, go-redis goes on dialing for a second after Close
	own.MinIdleConns, own.MaxRetries, own.DialerRetries, own.DisableIdentity = 0, -1, 1, true
	own.Protocol = 2 // in RESP3 scores are numbers outside of scripts, and text within
	own.ContextTimeoutEnabled, own.DialTimeout, own.ReadTimeout, own.WriteTimeout = true, patience, patience, patience
	return redis.NewClient(&own)
}

func newWalk(n *Node, index int, q *Query, f *found) *walk {
	return &walk{node: n, index: index, query: q, found: f, client: Client(n.Options, q.Patience), script: redis.NewScript(script.List)}
}

// run finds the locks on the node, and reads them.
func (w *walk) run(ctx context.Context) {
	pattern, head, whole := parse(w.query.Pattern)
	if w.pattern = pattern; whole {
		w.want([]string{w.query.Prefix + head + script.QueueSuffix})
		w.read(ctx, 1)
		return
	}
	match := Escape(w.query.Prefix+head) + "*" // the keys of queues do not end as the pattern does
	for cursor := uint64(0); ; {
		var keys []string
		if !w.step(ctx, func(ctx context.Context) (err error) {
			keys, cursor, err = w.client.Scan(ctx, cursor, match, chunk).Result()
			return err
		}) {
			return
		}
		w.want(keys)
		if !w.read(ctx, chunk) {
			return
		}
		if cursor == 0 {
			w.read(ctx, 1)
			return
		}
	}
}

// again reads names once more.
func (w *walk) again(ctx context.Context, names []string) {
	for _, name := range names {
		w.queued = append(w.queued, w.query.Prefix+name)
	}
	w.read(ctx, 1)
}

// want notes which of the keys have to be read. SCAN may give a key twice.
func (w *walk) want(keys []string) {
	w.found.mu.Lock()
	defer w.found.mu.Unlock()
	for _, key := range keys {
		key, queue, ok := script.LockOf(key)
		name, ours := strings.CutPrefix(key, w.query.Prefix)
		if !ok || !ours || name == "" || len(key) > redlock.MaxName || !w.pattern.matches(name) || !w.found.want(w.index, name, queue) {
			continue
		}
		if queue {
			w.queued = append(w.queued, key)
		} else {
			w.plain = append(w.plain, key)
		}
	}
}

// read reads the keys that wait for it, as long as there are so many. It reports whether the node answers.
func (w *walk) read(ctx context.Context, enough int) bool {
	for len(w.queued)+len(w.plain) >= enough {
		queues := min(len(w.queued), chunk)
		keys := append(w.queued[:queues:queues], w.plain[:min(len(w.plain), chunk-queues)]...)
		var reply []any
		if !w.step(ctx, func(ctx context.Context) (err error) {
			reply, err = w.script.Run(ctx, w.client, keys, queues, some, some).Slice()
			return err
		}) {
			return false
		}
		read, err := parseReply(keys, reply)
		if err != nil {
			w.lose(wire.Failed, err, 0)
			return false
		}
		for i := range read {
			read[i].whole = i < queues
			if !w.rest(ctx, &read[i]) {
				return false
			}
		}
		w.keep(read)
		if done := len(read); done <= queues {
			w.queued = w.queued[done:]
		} else {
			w.queued, w.plain = w.queued[queues:], w.plain[done-queues:]
		}
	}
	return true
}

// A read is what the node has said of one key.
type read struct {
	key            string
	whole          bool // with its queue
	holder         string
	pttl           int64
	time           int64 // the node's, in microseconds
	queue, members []any
}

// parseReply reads the reply of list.lua.
func parseReply(keys []string, reply []any) (all []read, err error) {
	odd := errors.New("unexpected reply to the script of a listing")
	if len(reply) != 5 {
		return nil, odd
	}
	time, ok := reply[0].(int64)
	var lists [4][]any
	for i := range lists {
		list, is := reply[i+1].([]any)
		lists[i], ok = list, ok && is
	}
	holders, lefts := lists[0], lists[1]
	if !ok || len(lefts) == 0 || len(lefts) > len(keys) || len(holders) < len(lefts) {
		return nil, odd
	}
	all = make([]read, len(lefts))
	for i := range all {
		r := &all[i]
		r.key, r.time = keys[i], time
		r.holder, _ = holders[i].(string)
		if r.pttl, ok = lefts[i].(int64); !ok {
			return nil, odd
		}
	}
	for which, list := range lists[2:] {
		for ; len(list) >= 2; list = list[2:] {
			i, is := list[0].(int64)
			members, are := list[1].([]any)
			if !is || !are || i < 1 || int(i) > len(all) {
				return nil, odd
			}
			if r := &all[i-1]; which == 0 {
				r.queue = members
			} else {
				r.members = members
			}
		}
	}
	return all, nil
}

// rest reads what is left of a large queue and a large set, a step for each part.
func (w *walk) rest(ctx context.Context, r *read) bool {
	return w.longer(ctx, r.key+script.QueueSuffix, &r.queue, 1<<30) && w.longer(ctx, r.key, &r.members, mostHolders)
}

func (w *walk) longer(ctx context.Context, key string, members *[]any, most int) bool {
	for part := 2 * some; part == 2*some && len(*members) > 0 && len(*members)%part == 0; {
		from := len(*members) / 2
		if from >= most {
			return true
		}
		to := min(from+some, most) - 1
		var next []any
		if !w.step(ctx, func(ctx context.Context) (err error) {
			next, err = w.client.Do(ctx, "ZRANGE", key, from, to, "WITHSCORES").Slice()
			return err
		}) {
			return false
		}
		part = len(next)
		*members = append(*members, next...)
	}
	return true
}

// keep stores what the node has said.
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

// reply is what the node has said, in the form of a reply to an inspection.
func (r *read) reply() wire.Reply {
	return wire.Parse(wire.Inspect, []any{r.holder, r.pttl, "", "", r.time, r.queue, r.members}, nil)
}

// Modes are the modes of holders, as the nodes store them.
var Modes = map[wire.Mode]redlock.Mode{
	wire.ModeS: redlock.ModeShared, wire.ModeSlots: redlock.ModeSlot, wire.ModeIX: redlock.ModeBelow, wire.ModeIS: redlock.ModeSharedBelow,
}

// moreOf is what few locks have; nil: this one does not have it.
func moreOf(a *wire.Reply) *more {
	m := new(more)
	for _, h := range a.Holders {
		m.holders = append(m.holders, redlock.Holder{Token: h.Token, By: redlock.Identify(h.Token), Mode: Modes[h.Mode], TTL: h.TTL, Nodes: 1})
	}
	for _, e := range a.Queue {
		if e.Lives(a.Time) {
			m.waiting = append(m.waiting, redlock.Waiter{
				Waiter: e.Waiter, Owner: e.Owner, Trace: redlock.Identify(e.Nonce).Trace,
				For: max(0, time.Duration(a.Time-e.Ticket)*time.Microsecond), Nodes: 1,
			})
		}
	}
	if len(m.holders)+len(m.waiting) == 0 {
		return nil
	}
	return m
}

// step makes one call to the node, and the pause after it. It reports whether the node has answered.
func (w *walk) step(ctx context.Context, call func(context.Context) error) bool {
	asked := time.Now()
	limit, cancel := context.WithTimeout(ctx, w.query.Patience)
	err := call(limit)
	cancel()
	if ctx.Err() != nil {
		w.lost = true
		return false
	}
	if err != nil {
		status := wire.Classify(err)
		if status == wire.Timeout || errors.Is(err, context.DeadlineExceeded) {
			status, err = wire.Timeout, nil
		}
		w.lose(status, facts.Discreet(err), time.Since(asked))
		return false
	}
	pause := time.NewTimer(w.pause(time.Now()))
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-ctx.Done():
	}
	return true
}

// pause is how long to wait after a step: until the node's turn, which comes once in each time of Pace, and
// not in the next moment. The turns of the nodes are apart from each other: nodes on one host would all be busy
// at once otherwise, and a client that needs a majority of them would wait for all of them.
func (w *walk) pause(now time.Time) time.Duration {
	since := now.Sub(w.began) - w.offset
	rest := w.query.Pace - since%w.query.Pace
	if rest < w.query.Pace/4 {
		rest += w.query.Pace
	}
	return rest
}

// lose gives the node up.
func (w *walk) lose(why wire.Status, err error, after time.Duration) {
	w.lost = true
	w.node.Err = &redlock.NodeError{Node: w.node.Name, Outcome: redlock.Outcome(why), Elapsed: after, Err: err}
}
