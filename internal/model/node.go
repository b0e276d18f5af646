package model

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/wire"
)

// A Node is a Redis server and the network before it.
type Node struct {
	Name string

	seed  sim.Seed
	rtt   time.Duration
	start time.Time

	mu            sync.Mutex
	keys          map[string]entry
	counts        map[string]int64 // the numbers, by bucket (see fence and below)
	queues        map[string]*queue
	subscriptions []*subscription
	mute          bool // nobody hears anything
	marker        string
	run           int             // how often it was started
	scripts       map[string]bool // by the run_id that they are for
	offset        time.Duration   // of its clock
	rate          float64         // and how much faster than true time it runs

	down, hung  bool
	cut         [2]bool // requests, replies
	epoch       int     // connections that were made in an earlier one are broken
	slow        time.Duration
	jitter      time.Duration
	refuses     error // what it says to everything
	readOnly    bool
	full        bool
	lose, tear  int // replies
	repeat      int // requests
	repeatLate  int
	repeatAfter time.Duration
	parked      []*message // not arrived, or not read
	unanswered  []*message // carried out, the reply is held back

	late        map[int64]bool // when something comes later; see later
	said        []Said         // see Say
	lateScripts bool           // see Churn
}

// An entry is a key: a lock's token, a set of those who hold it in a mode other than exclusive,
// or something that is no lock.
type entry struct {
	token   string
	set     map[string]mark // by token; nil: it is no set
	expires time.Duration   // by the node's clock, in whole milliseconds
	foreign bool            // of another type
}

// A mark is how a token is in a set, and until when it counts.
type mark struct {
	mode  wire.Mode
	until time.Duration
}

// NewNode is a node that is well, with a round trip of about rtt, and has been there
// for long.
func NewNode(s sim.Seed, name string, rtt time.Duration) *Node {
	n := &Node{
		Name: name, seed: s.For(name), rtt: rtt, start: time.Now(),
		keys: make(map[string]entry), counts: make(map[string]int64), queues: make(map[string]*queue), scripts: make(map[string]bool),
		late: make(map[int64]bool),
	}
	n.marker = script.Settled(n.runID(), n.start)
	return n
}

func (n *Node) runID() string { return fmt.Sprintf("%s.%d", n.Name, n.run) }

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
// which is what Redis goes by. Under the mutex.
func (n *Node) clock() time.Duration {
	t := time.Since(n.start)
	return t + time.Duration(n.rate*float64(t)) + n.offset
}
func (n *Node) now() time.Duration { return n.clock().Truncate(time.Millisecond) }

// micros is what TIME says. Under the mutex.
func (n *Node) micros() int64 { return n.start.Add(n.clock()).UnixMicro() }

// lookup finds what is under a key and has not expired: Redis keeps a key until
// the clock is past its time, not when it shows it. Under the mutex.
func (n *Node) lookup(key string) (e entry, ok bool) {
	e, ok = n.keys[key]
	if ok && !e.foreign && n.now() > e.expires {
		delete(n.keys, key)
		return entry{}, false
	}
	return e, ok
}

// join is what joining a node comes to. Under the mutex.
func (n *Node) join(m *message) {
	if m.err = n.refuses; m.err != nil {
		return
	}
	m.mark = wire.Mark{Now: n.micros()}
	runID := ""
	if m.hello.Marked {
		runID, m.mark.Before = n.runID(), n.marker
		switch marker := n.marked(&m.hello); {
		case marker == n.marker:
		case n.full:
			m.err = full
			return
		case n.readOnly:
			m.err = readOnly
			return
		default:
			n.marker = marker
		}
		m.mark.Value = n.marker
	}
	n.scripts[runID] = true
}

// marked is what the marker is to be for one who joins. Under the mutex.
func (n *Node) marked(hello *wire.Hello) string {
	const slack = 1000
	now := n.start.Add(n.now()).UnixMilli()
	mark, ok := wire.ParseMarker(n.marker)
	mark.Longest = max(mark.Longest, hello.Longest)
	switch {
	case !ok || mark.RunID != n.runID() || mark.Born > now+slack:
		mark.RunID, mark.Born, mark.Writer, mark.DB = n.runID(), now, hello.Time, ""
	case mark.Writer > hello.Time+slack:
		mark.Writer = hello.Time
	}
	return mark.String()
}

// carryOut executes a message. Under the mutex.
func (n *Node) carryOut(m *message) {
	if m.connect || m.join {
		n.join(m)
		return
	}
	if n.repeat > 0 {
		n.repeat--
		n.execute(m) // and the second time is the one that is answered
	}
	n.execute(m)
	if n.repeatLate > 0 {
		n.repeatLate--
		again := &message{calls: slices.Clone(m.calls), id: m.id, from: m.from}
		n.later(m.from, n.repeatAfter/2+m.id.For("repeat").Below(n.repeatAfter/2), func() {
			if !n.down {
				n.execute(again)
			}
		})
	}
	whole := len(m.calls)
	switch {
	case n.lose > 0:
		n.lose--
		whole = 0
	case n.tear > 0:
		n.tear--
		whole /= 2
	default:
		return
	}
	for i := range m.calls[whole:] {
		m.calls[whole+i].Value, m.calls[whole+i].Err = nil, errReset
	}
	m.err = errReset
}

func (n *Node) execute(m *message) {
	middle := -1
	if n.lateScripts && len(n.scripts) == 0 && len(m.calls) > 1 {
		middle = 1 + int(m.id.For("scripts").Below(time.Duration(len(m.calls)-1)))
	}
	for i := range m.calls {
		c := &m.calls[i]
		if i == middle { // another client has loaded them
			n.scripts[""], n.scripts[n.runID()] = true, true
		}
		c.Value, c.Err = n.do(c)
	}
}

var (
	errReset   = error(syscall.ECONNRESET)
	errRefused = error(syscall.ECONNREFUSED)
	errEnded   = errors.New("interrupted")
)

// release has parked messages go on. Under the mutex.
func (n *Node) release() {
	if n.down {
		for _, m := range append(n.parked, n.unanswered...) {
			m.end(errReset)
		}
		n.parked, n.unanswered = nil, nil
	}
	if !n.hung && !n.cut[requests] {
		for _, m := range n.parked {
			n.receive(m)
		}
		n.parked = nil
	}
	if !n.hung && !n.cut[replies] {
		for _, m := range n.unanswered {
			m.end(m.err)
		}
		n.unanswered = nil
		for _, s := range n.subscriptions {
			if len(s.inbox) > 0 {
				s.signal()
			}
		}
	}
}

// receive takes in a message that has arrived. Under the mutex.
func (n *Node) receive(m *message) {
	switch {
	case m.subscription != nil && n.down:
		m.end(errRefused)
	case m.subscription != nil:
		if m.err = n.refuses; m.err == nil {
			n.subscriptions = append(n.subscriptions, m.subscription)
		}
		n.reply(m)
	case m.connect && n.down:
		m.end(errRefused)
	case m.connect:
		m.epoch = n.epoch
		n.carryOut(m)
		n.reply(m)
	case n.down || m.epoch != n.epoch:
		m.end(errReset)
	default:
		n.carryOut(m)
		n.reply(m)
	}
}

func (n *Node) reply(m *message) {
	if n.cut[replies] {
		n.unanswered = append(n.unanswered, m)
		return
	}
	m.end(m.err)
}

func (n *Node) set(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
	n.release()
}

// Kill ends the node as SIGKILL does.
func (n *Node) Kill() {
	n.set(func() { n.down, n.hung, n.epoch = true, false, n.epoch+1; n.dropSubscriptions() })
}

// Restart starts it again, with what it had or without.
func (n *Node) Restart(keepData bool) {
	n.set(func() {
		n.down = false
		n.run++
		clear(n.scripts)
		if !keepData {
			n.forget()
		}
	})
}

// Hang stops the node, as SIGSTOP does, and has it go on.
func (n *Node) Hang(on bool) { n.set(func() { n.hung = on }) }

// Cut holds back requests, replies or both, and lets them go.
func (n *Node) Cut(requests, replies bool) { n.set(func() { n.cut = [2]bool{requests, replies} }) }

// Reset breaks all connections. What was held back on them is lost.
func (n *Node) Reset() {
	n.set(func() {
		n.epoch++
		for _, m := range append(n.parked, n.unanswered...) {
			m.end(errReset)
		}
		n.parked, n.unanswered = nil, nil
		n.dropSubscriptions()
	})
}

// Delay has each message take so much longer, half a round trip and up to jitter.
func (n *Node) Delay(roundTrip, jitter time.Duration) {
	n.set(func() { n.slow, n.jitter = roundTrip/2, jitter })
}

// Refuse has the node say this to everything; nil: no more.
func (n *Node) Refuse(err error) { n.set(func() { n.refuses = err }) }

// ReadOnly has it refuse to write.
func (n *Node) ReadOnly(on bool) { n.set(func() { n.readOnly = on }) }

// Full has it refuse to write what needs memory.
func (n *Node) Full(on bool) { n.set(func() { n.full = on }) }

// Lose has the next times replies get lost with their connections, or be torn.
func (n *Node) Lose(times int) { n.set(func() { n.lose = times }) }
func (n *Node) Tear(times int) { n.set(func() { n.tear = times }) }

// Repeat has the next times messages carried out twice; RepeatLate the second
// time up to so much later, and at least half of that.
func (n *Node) Repeat(times int) { n.set(func() { n.repeat = times }) }
func (n *Node) RepeatLate(times int, after time.Duration) {
	n.set(func() { n.repeatLate, n.repeatAfter = times, after })
}

// Churn has scripts that were dropped be loaded again by somebody else, in the middle of a
// pipeline.
func (n *Node) Churn(on bool) { n.set(func() { n.lateScripts = on }) }

// Flush drops all keys, FlushScripts all scripts.
func (n *Node) Flush()        { n.set(n.forget) }
func (n *Node) FlushScripts() { n.set(func() { clear(n.scripts) }) }

// SetMarker has the node's marker say something else.
func (n *Node) SetMarker(text string) { n.set(func() { n.marker = text }) }

// FlushCounters drops the numbers, and nothing else.
func (n *Node) FlushCounters() { n.set(func() { clear(n.counts) }) }

func (n *Node) forget() {
	clear(n.keys)
	clear(n.counts)
	clear(n.queues)
	n.marker = ""
}

// Evict drops some locks, but not their counters.
func (n *Node) Evict(some int) {
	n.set(func() {
		for _, key := range n.list()[:min(some, len(n.list()))] {
			delete(n.keys, key)
		}
	})
}

// Put makes a key of another type with this name, unless there is one already;
// Take takes it away.
func (n *Node) Put(key string) {
	n.set(func() {
		if _, there := n.lookup(key); !there {
			n.keys[key] = entry{foreign: true}
		}
	})
}
func (n *Node) Take(key string) {
	n.set(func() {
		if n.keys[key].foreign {
			delete(n.keys, key)
		}
	})
}

// Step sets the node's clock forward, or back.
func (n *Node) Step(d time.Duration) { n.set(func() { n.offset += d }) }

// Rate has its clock run faster than true time by this part of it.
func (n *Node) Rate(r float64) { n.set(func() { n.rate = r }) }

// Tokens is what is on the node: the keys, in order, with their tokens.
func (n *Node) Tokens() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, key := range n.list() {
			e := n.keys[key]
			if e.set == nil && !yield(key, e.token) {
				return
			}
			for _, token := range slices.Sorted(maps.Keys(e.set)) {
				if e.set[token].until >= n.now() && !yield(key, token) {
					return
				}
			}
		}
	}
}

func (n *Node) list() []string {
	for key := range n.keys {
		n.lookup(key)
	}
	return slices.Sorted(maps.Keys(n.keys))
}
