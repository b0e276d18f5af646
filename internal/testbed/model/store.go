package model

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/wire"
)

// A store is what a Redis server has, and what it does with it: its keys, its clock, and its scripts.
// Its methods are called under the mutex.
type store struct {
	name  string
	start time.Time

	// publish sends a message to a waiter's process.
	publish func(waiter, message string)

	mu      sync.Mutex // protects what follows, and what the Node has beside it; a message ends under it
	keys    map[string]entry
	counts  map[string]int64 // the numbers, by bucket (see fence and below)
	queues  map[string]*queue
	marker  string
	kept    wire.Kept       // what it keeps of its set
	choice  choice          // of the next description
	run     int             // how often it was started
	scripts map[string]bool // by whom they are for; see hashes
	offset  time.Duration   // of its clock
	rate    float64         // and how much faster than true time it runs

	refuses  error    // what it says to everything
	about    []string // or to what is about these keys
	readOnly bool
	full     bool
	mute     bool // no subscriber gets a message
}

// init makes the store of a server that has been there for long.
func (n *store) init(name string, publish func(waiter, message string)) {
	n.name, n.start, n.publish = name, time.Now(), publish
	n.keys, n.counts = make(map[string]entry), make(map[string]int64)
	n.queues, n.scripts = make(map[string]*queue), make(map[string]bool)
	n.marker = script.Settled(n.runID(), n.start)
}

// An entry is a key: a lock's token, a set of those who hold it in a mode other than exclusive,
// or something that is no lock.
type entry struct {
	token   string
	set     map[string]mark // by token; nil: it is no set
	expires time.Duration   // by the node's clock, in whole milliseconds
	foreign bool            // of another type
	ghost   bool            // see Node.Ghost
}

// A mark is how a token is in a set, and until when it counts.
type mark struct {
	mode  wire.Mode
	until time.Duration
}

// A queue is a lock's, and when its key expires.
type queue struct {
	wire.Queue
	expires time.Duration
}

func (n *store) runID() string { return fmt.Sprintf("%s.%d", n.name, n.run) }

// An Error is what a node says in the place of a reply.
type Error string

func (e Error) Error() string { return string(e) }
func (e Error) RedisError()   {}

// What nodes say.
const (
	noScript  = Error("NOSCRIPT No matching script. Please use EVAL.")
	wrongType = Error("WRONGTYPE Operation against a key holding the wrong kind of value")
	readOnly  = Error("READONLY You can't write against a read only replica.")
	full      = Error("OOM command not allowed when used memory > 'maxmemory'.")
)

// clock is the node's, from its start on, and now is that in whole milliseconds,
// which is what Redis goes by.
func (n *store) clock() time.Duration {
	t := time.Since(n.start)
	return t + time.Duration(n.rate*float64(t)) + n.offset
}
func (n *store) now() time.Duration { return n.clock().Truncate(time.Millisecond) }

// micros is what TIME says.
func (n *store) micros() int64 { return n.start.Add(n.clock()).UnixMicro() }

// lookup finds what is under a key and has not expired: Redis keeps a key until
// the clock is past its time, not when it shows it.
func (n *store) lookup(key string) (e entry, ok bool) {
	e, ok = n.keys[key]
	if ok && !e.foreign && n.now() > e.expires {
		delete(n.keys, key)
		return entry{}, false
	}
	return e, ok
}

// refusal is what the node says to everything, or to a call about these keys.
func (n *store) refusal(keys []string) error {
	if len(n.about) > 0 && !slices.ContainsFunc(keys, func(key string) bool { return slices.Contains(n.about, key) }) {
		return nil
	}
	return n.refuses
}

// join is what joining a node comes to.
func (n *store) join(hello *wire.Hello) (mark wire.Mark, err error) {
	if err := n.refusal(nil); err != nil {
		return mark, err
	}
	mark = wire.Mark{Now: n.micros()}
	if hello.Marked {
		if told := n.tells(hello); told != n.kept {
			if err := n.writable(); err != nil {
				return mark, err
			}
			again := n.kept.Description == nil && n.choice.epoch != told.Epoch && !n.comes(told.Description)
			if n.kept, n.choice = told, (choice{}); again {
				n.choice.lost = told.Epoch
			}
		}
		mark.Kept = n.kept
		before, _ := wire.ParseMarker(n.marker)
		anew := before.Epoch > n.kept.At()
		if mark.Before = n.marker; anew {
			mark.Before = ""
		}
		switch marker := n.marked(hello, anew); {
		case marker == n.marker:
		case n.full:
			return mark, full
		case n.readOnly:
			return mark, readOnly
		default:
			n.marker = marker
		}
		mark.Value = n.marker
	}
	n.scripts[wire.RunID(mark.Value)] = true
	return mark, nil
}

// marked is what the marker is to be when a client joins. It is a new one if what the node has kept of its set was
// deleted.
func (n *store) marked(hello *wire.Hello, anew bool) string {
	const slack = wire.MarkerSlack
	now := n.start.Add(n.now()).UnixMilli()
	mark, ok := wire.ParseMarker(n.marker)
	mark.Epoch = n.kept.At()
	switch {
	case anew || !ok || mark.RunID != n.runID() || mark.Born > now+slack:
		mark.RunID, mark.Born, mark.Writer, mark.DB = n.runID(), now, hello.Time, ""
	case mark.Writer > hello.Time+slack:
		mark.Writer = hello.Time
	}
	return mark.String()
}

// tells is what the node is to keep of its set, when a client has joined.
func (n *store) tells(hello *wire.Hello) wire.Kept {
	d := hello.Keep.Description
	switch {
	case d == nil:
	case n.kept.Description != nil && n.kept.Set == d.Set && n.kept.At() < d.Epoch:
		self := n.kept.Self
		if hello.Keep.Self != "" && !d.Has(self) {
			self = hello.Keep.Self
		}
		return wire.Kept{Self: self, Description: d}
	case hello.Keep.Self == "":
	case n.kept.Description == nil && (n.marker != "" && n.marker == hello.While || n.choice.value == d.Text() || n.comes(d)):
		return hello.Keep
	}
	return n.kept
}

// A choice is that of a description, which is under way.
type choice struct {
	epoch                  int64
	promised, taken, value string
	lost                   int64  // the description that it was told again, after it had lost its data
	comes                  string // the marker, and the description by which the node is to become a member
}

// note is what a node writes down that is to become a member by a description: with its marker, which it would lose with its data.
func (n *store) note(d string) string {
	mark, _ := wire.ParseMarker(n.marker)
	return fmt.Sprintf("%s:%d %s", mark.RunID, mark.Born, d)
}

// comes reports whether the node has noted that it becomes a member by a description, and has lost nothing since.
func (n *store) comes(d *wire.Description) bool {
	mark, _ := wire.ParseMarker(n.marker)
	return mark.RunID == n.runID() && n.choice.comes == n.note(d.Text())
}

func (n *store) choose(c *Call) (any, error) {
	epoch, _ := strconv.ParseInt(c.Args[0], 10, 64)
	ballot, value, set := c.Args[1], c.Args[2], ""
	if n.kept.Description != nil {
		set = n.kept.Set
	}
	if len(c.Args) > 4 {
		if err := n.writable(); err != nil {
			return nil, err
		}
		if n.marker != "" {
			n.choice.comes = n.note(value)
		}
		return []any{n.kept.String(), "", "", "", n.marker, int64(0)}, nil
	}
	if n.kept.At() != epoch-1 || set != c.Args[3] {
		return []any{n.kept.String(), "", "", "", n.marker, int64(0)}, nil
	}
	now := n.choice
	if now.epoch != epoch {
		now = choice{epoch: epoch, lost: now.lost, comes: now.comes}
	}
	lost := int64(0)
	if now.lost > 0 && now.lost == epoch-1 {
		lost = 1
	}
	if ballot > now.promised || ballot == now.promised && value != "" {
		if err := n.writable(); err != nil {
			return nil, err
		}
		if now.promised = ballot; value != "" {
			now.taken, now.value = ballot, value
		}
		n.choice = now
	}
	return []any{n.kept.String(), now.promised, now.taken, now.value, n.marker, lost}, nil
}

// merge gives the counters, or makes them at least as large.
func (n *store) merge(c *Call) (any, error) {
	if len(c.Args) == 0 {
		var fences, belows []any
		for _, name := range slices.SortedFunc(maps.Keys(n.counts), func(a, b string) int {
			return cmp.Or(cmp.Compare(n.counts[a], n.counts[b]), cmp.Compare(a, b))
		}) {
			table, bucket, _ := strings.Cut(name, " ")
			if to := &fences; n.counts[name] > 0 {
				if table == script.Belows {
					to = &belows
				}
				*to = append(*to, bucket, strconv.FormatInt(n.counts[name], 10))
			}
		}
		return []any{fences, belows}, nil
	}
	if err := n.writable(); err != nil {
		return nil, err
	}
	pairs, _ := strconv.Atoi(c.Args[0])
	for i := 1; i+1 < len(c.Args); i += 2 {
		number, _ := strconv.ParseInt(c.Args[i], 10, 64)
		table := script.Fences
		if i > 2*pairs {
			table = script.Belows
		}
		n.count(table+" "+c.Args[i+1], number)
	}
	return int64(1), nil
}

func (n *store) forget() {
	clear(n.keys)
	clear(n.counts)
	clear(n.queues)
	n.marker, n.kept, n.choice = "", wire.Kept{}, choice{}
}

// list gives the keys of locks.
func (n *store) list() []string {
	for key := range n.keys {
		n.lookup(key)
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(n.keys)), script.Lasting)
}
