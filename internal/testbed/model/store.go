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

// A store is the state of a Redis server: keys, clock, and what its scripts do. Its methods are called under mu.
type store struct {
	name  string
	start time.Time

	// publish sends a message to the process of a waiter. It is called under mu.
	publish func(waiter, message string)

	mu       sync.Mutex // protects what follows, and the fields of the Node; a message is decided under it
	keys     map[string]entry
	counts   map[string]int64 // the counters of fences, by bucket (see fence and below)
	queues   map[string]*queue
	marker   string
	kept     wire.Kept       // the description of the set that it keeps
	choice   choice          // its ballots for the next description
	run      int             // how often it was started again
	scripts  map[string]bool // the run_ids in the acquire scripts that are loaded
	released map[string]bool // the tokens of which a release was carried out; see Node.Ghost
	offset   time.Duration   // of its clock, from true time
	rate     float64         // by this part its clock runs faster than true time

	refuses  error    // its answer to everything; nil: it works
	about    []string // or only to what is about these keys
	readOnly bool
	full     bool
	mute     bool // subscribers get no messages
}

// init makes the store of a server that has been running for a long time, so that it may vote.
func (n *store) init(name string, publish func(waiter, message string)) {
	n.name, n.start, n.publish = name, time.Now(), publish
	n.keys, n.counts = make(map[string]entry), make(map[string]int64)
	n.queues, n.scripts, n.released = make(map[string]*queue), make(map[string]bool), make(map[string]bool)
	n.marker = script.Settled(n.runID(), n.start)
}

// An entry is a key: a lock's token, the set of tokens that hold it in shared modes, or something that is no lock.
type entry struct {
	token   string
	set     map[string]mark // by token; nil: the key is no set
	expires time.Duration   // by the node's clock, in whole milliseconds
	foreign bool            // of another type, and without a TTL
	ghost   bool            // see Node.Ghost
}

// A mark is a token in a set: its mode, and until when it counts.
type mark struct {
	mode  wire.Mode
	until time.Duration
}

// A queue is the queue of a lock, and when its key expires.
type queue struct {
	wire.Queue
	expires time.Duration
}

func (n *store) runID() string { return fmt.Sprintf("%s.%d", n.name, n.run) }

// An Error is an error that a node sends.
type Error string

func (e Error) Error() string { return string(e) }
func (e Error) RedisError()   {}

// What nodes send as errors.
const (
	noScript  = Error("NOSCRIPT No matching script. Please use EVAL.")
	wrongType = Error("WRONGTYPE Operation against a key holding the wrong kind of value")
	readOnly  = Error("READONLY You can't write against a read only replica.")
	full      = Error("OOM command not allowed when used memory > 'maxmemory'.")
)

// clock returns the time since the store was made, by the node's clock; now cuts it to milliseconds, as Redis does.
func (n *store) clock() time.Duration {
	t := time.Since(n.start)
	return t + time.Duration(n.rate*float64(t)) + n.offset
}
func (n *store) now() time.Duration { return n.clock().Truncate(time.Millisecond) }

// micros returns the node's time as TIME does, in microseconds since 1970.
func (n *store) micros() int64 { return n.start.Add(n.clock()).UnixMicro() }

// lookup returns the entry of a key that has not expired. Redis drops a key when the clock is past its time.
func (n *store) lookup(key string) (e entry, ok bool) {
	e, ok = n.keys[key]
	if ok && !e.foreign && n.now() > e.expires {
		delete(n.keys, key)
		return entry{}, false
	}
	return e, ok
}

// refusal returns the error that the node answers a call about these keys with; nil: it carries the call out.
func (n *store) refusal(keys []string) error {
	if len(n.about) > 0 && !slices.ContainsFunc(keys, func(key string) bool { return slices.Contains(n.about, key) }) {
		return nil
	}
	return n.refuses
}

// join makes sure that the node has a marker of this run, and keeps the client's description of the set if it may
// (join.lua), and loads the client's scripts. An error: what the node sends instead.
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

// marked returns the marker that the node is to have when a client has joined: the one that it has if that is of this
// run and not of the future, or a new one. anew: a new one in any case, since the node's description was deleted.
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

// tells returns what the node is to keep when a client has joined: the client's description if it may, or what it has.
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

// A choice is the node's part in choosing the next description; see choose.lua.
type choice struct {
	epoch                  int64
	promised, taken, value string
	lost                   int64  // the epoch of the description that it was told again after it had lost its data; 0: none
	comes                  string // the note of the description by which it is to become a member; see note
}

// note returns the text that the node stores when it is to become a member by the description with the text d. It names
// the marker, which the node would lose with its data.
func (n *store) note(d string) string {
	mark, _ := wire.ParseMarker(n.marker)
	return fmt.Sprintf("%s:%d %s", mark.RunID, mark.Born, d)
}

// comes reports whether the node noted that it becomes a member by d, and has lost no data since.
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
	mark, _ := wire.ParseMarker(n.marker)
	if known, _ := wire.ParseMarker(c.Mark); c.Mark != "" && (mark.RunID != known.RunID || mark.Born != known.Born) {
		return []any{n.kept.String(), "", "", "", n.marker, int64(0)}, nil
	}
	if len(c.Args) > 4 && c.Args[4] == "comes" {
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

// merge returns the tables of counters for fences, or raises their numbers to c.Args, as merge.lua does.
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

// list returns the keys of locks on the node, in order, and drops those that have expired.
func (n *store) list() []string {
	for key := range n.keys {
		n.lookup(key)
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(n.keys)), script.Lasting)
}
