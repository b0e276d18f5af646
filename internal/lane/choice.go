package lane

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/wire"
)

// How the members of a set choose its next description: by ballots, as in Paxos (choose.lua). members.go says
// what becomes of one that was chosen, and change.go when there may be a next one.

// A wait is a caller's, for answers of nodes.
type wait struct {
	ctx   context.Context
	host  sim.Host
	timer *time.Timer
	key   string
	turn  int
	plan  bool // nothing is waited for that takes long
	over  bool // the time is over, or the context has ended

	limited bool // the timer runs
}

func (s *Set) waits(ctx context.Context, limit time.Duration) *wait {
	return &wait{ctx: ctx, host: s.cfg.Host, timer: time.NewTimer(limit), key: s.cfg.Host.Token(), limited: true}
}

// until is another wait of the same caller, which is over sooner. Only one of them waits at a time.
func (w *wait) until(limit time.Duration) *wait {
	sooner := *w
	sooner.timer, sooner.turn = time.NewTimer(limit), 1<<16
	return &sooner
}

func (w *wait) stop() { w.timer.Stop() }

// prolong gives the caller so much time from now on, if its time is limited. Where a round trip takes more
// than half of a NodeTimeout, a choice would never come to its end otherwise: each call would begin another.
func (w *wait) prolong(d time.Duration) {
	if w.limited {
		w.timer.Reset(d)
	}
}

// wait waits until a channel is closed, and reports whether that came before the wait was over.
func (w *wait) wait(done <-chan struct{}) bool {
	select {
	case <-done:
	case <-w.timer.C:
		w.over = true
	case <-w.ctx.Done():
	}
	w.turn++
	w.host.Woke(sim.Caller, w.key, -w.turn)
	w.over = w.over || w.ctx.Err() != nil
	return !w.over
}

// pause waits for some time.
func (w *wait) pause(d time.Duration) {
	done := make(chan struct{})
	timer := time.AfterFunc(d, func() { close(done) })
	defer timer.Stop()
	w.wait(done)
}

// choose has a description chosen by a majority of the members of a view, whose epoch is the one before, and
// returns it: the proposal, or one that may have been chosen already (Paxos; see choose.lua). It returns
// nil if that took too long, or another description has become known.
func (s *Set) choose(w *wait, proposal *wire.Description, v *View) *wire.Description {
	need := len(v.Lanes)/2 + 1
	var largest, set string
	if v.Description != nil {
		set = v.Description.Set
	}
	for !w.over {
		ballot := s.ballot(largest)
		step := func(value string) (yes int, said []wire.Chosen, ahead bool) {
			p := s.poll(w, v, wire.Choose, []string{strconv.FormatInt(proposal.Epoch, 10), ballot, value, set}, func(p *poll) bool {
				yes, _, ahead := p.count(proposal.Epoch, set, ballot, value)
				return yes >= need || ahead
			})
			return p.count(proposal.Epoch, set, ballot, value)
		}
		yes, said, ahead := step("")
		best, value := "", proposal
		for _, c := range said {
			largest = max(largest, c.Promised)
			if d := wire.ParseDescription(c.Value); d != nil && c.Taken > best {
				best, value = c.Taken, d
			}
		}
		if yes >= need && !ahead {
			w.prolong(s.cfg.NodeTimeout)
			yes, said, ahead = step(value.Text())
			if yes >= need {
				return wire.ParseDescription(value.Text()) // as all others read it
			}
			for _, c := range said {
				largest = max(largest, c.Promised)
			}
		}
		if ahead { // which description it has, is learned when it is joined
			for _, n := range v.Lanes {
				n.rejoin()
			}
			return nil
		}
		w.pause(Jittered(s.cfg.NodeTimeout/4, s.cfg.Host.Jitter())) // two that go on at once would refuse each other again
	}
	return nil
}

// ballot is larger than another one, and unlike that of any other client.
func (s *Set) ballot(than string) string {
	at := s.cfg.Clock.Now().UnixMicro()
	if len(than) == 24 {
		if n, err := strconv.ParseInt(than[:16], 10, 64); err == nil {
			at = max(at, n+1)
		}
	}
	return fmt.Sprintf("%016d%08d", at, int64(s.cfg.Host.Jitter()*1e8))
}

// A poll has what nodes have answered.
type poll struct {
	set   *Set
	asked int

	mu     sync.Mutex // protects what follows
	open   int
	said   []any
	denied error // what a node must not do, or cannot
	enough func(*poll) bool
	done   chan struct{} // closed when that is enough, or all have answered
}

// poll asks the members of a view, until that is enough or the time for an answer is over, and gives what
// they have replied.
func (s *Set) poll(w *wait, v *View, op wire.Op, args []string, enough func(*poll) bool) *poll {
	p := &poll{set: s, enough: enough, asked: len(v.Lanes), open: len(v.Lanes), done: make(chan struct{})}
	about := &Claim{Key: "redlock:set"}
	about.Span(s.Room())
	now := s.cfg.Clock.Now()
	for _, n := range v.Lanes {
		q := &Request{Op: op, Claim: about, Deadline: now.Add(s.cfg.NodeTimeout), To: p, Args: args}
		if n.Submit(q, now) {
			p.Deliver(n.Index, q)
		}
	}
	limit := time.AfterFunc(s.cfg.NodeTimeout, p.end)
	defer limit.Stop()
	w.wait(p.done)
	p.mu.Lock()
	defer p.mu.Unlock()
	return &poll{asked: p.asked, said: slices.Clone(p.said), denied: p.denied}
}

func (p *poll) Deliver(node int, q *Request) {
	p.mu.Lock()
	p.open--
	switch {
	case q.Reply.Status == wire.Granted:
		p.said = append(p.said, q.Said)
	case wire.Forbids(q.Reply.Err):
		p.denied = fmt.Errorf("node %s: %w", p.set.Lane(node).Name, q.Reply.Err)
	}
	over := p.open == 0 || p.enough(p)
	p.mu.Unlock()
	if over {
		p.end()
	}
}

func (p *poll) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.done:
	default:
		close(p.done)
	}
}

// count reads the answers to a step of a choice: how many have promised, or taken; what all have said; and
// whether one keeps the description of that epoch already, or a later one; of this set, if it has a name yet.
//
// A node that may have forgotten what it took counts if all members have answered. Otherwise two descriptions of
// an epoch could be chosen: A and B take one, B loses its data and is told the description before again, and B
// and C take another.
func (p *poll) count(epoch int64, set, ballot, value string) (yes int, said []wire.Chosen, ahead bool) {
	lost := 0
	for _, v := range p.said {
		c, ok := wire.ParseChosen(v)
		if !ok {
			continue
		}
		said = append(said, c)
		switch {
		case c.Promised != ballot || value != "" && c.Taken != ballot:
		case c.Lost:
			lost++
		default:
			yes++
		}
		told := wire.ParseTold(c.Told)
		ahead = ahead || told.At() >= epoch && (set == "" || told.Set == set)
	}
	if len(said) == p.asked {
		yes += lost
	}
	return yes, said, ahead
}
