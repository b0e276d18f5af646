package redlock

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/wire"
)

// Whoever waits for a lock is in its queue on every node that has refused him, from
// the instant of the refusal on, with a ticket that is the same everywhere: when he
// came. No node grants the lock to anybody while one with a lower ticket waits there
// (wire.Queue.Admits). An attempt that failed was refused by so many nodes that
// no quorum is left without one of them, and where it was granted it is given back for
// the place in the queue (yield.lua), so nobody who comes later can overtake.
//
// A release hands the lock to the first of each node's queue (hand.go), or tells him that
// it is free, and nobody else. He tries again when as many nodes can be his as make a
// quorum: those that had granted to him and got it back, those that he was handed, and
// those that have told him since that they are free. The others need not be told: they
// count from one heartbeat to the next, each of which is an attempt like the first. It
// keeps the place, it finds out what nobody has told (a message got lost, a key expired,
// the one before is dead), and it has the lock if it is free, or was handed to him.
//
// The tickets make an end of split votes: those who split them have all refused each
// other's nodes, so each is in the queue where he was not granted. When all have given
// back, the lowest ticket is the first on all nodes but those that had been his, and
// those are free to him as well.

const (
	minBeat = 100 * time.Millisecond
	maxBeat = wire.MaxLease * time.Millisecond / 3

	// linger is how long subscriptions are kept after the last waiter.
	linger = 5 * time.Second

	// remembered is how long clients of other libraries are reckoned with after one of their
	// locks was seen.
	remembered = time.Minute
)

// beat is how long a waiter goes without asking again, and a third of his lease.
func beat(ttl time.Duration) time.Duration { return min(max(ttl/10, minBeat), maxBeat) }

// leaseOf is for how long a waiter counts without another word.
func leaseOf(ttl time.Duration) time.Duration { return 3 * beat(ttl) }

// A hall is where the callers of a Locker wait. Those who want the same lock, and of the
// same kind, stand in a line, and the first of them speaks for all.
type hall struct {
	locker  *Locker
	process string

	mu     sync.Mutex
	count  int
	lines  map[string]*line   // by what they want
	voices map[string]*waiter // by name, those who speak
	ears   int                // how many of them have been refused, and listen
	deafen context.CancelFunc // ends the subscriptions; nil: there are none
	quiet  *time.Timer        // stops listening; nil: somebody waits
	closed bool
	met    time.Time // when another library was last seen to have a lock
	ending sync.WaitGroup
}

// A line is the waiters of this process for one lock, the first of whom speaks.
type line struct {
	waiters []*waiter
	last    *QuorumError // what came of the last attempt
}

// A waiter is one call that waits for a lock.
type waiter struct {
	hall   *hall
	want   *acquisition
	course *course
	name   string // as the nodes know it
	ticket int64
	turn   chan struct{} // closed when it is the first of its line; nil: it was from the start
	wake   chan struct{} // gets a value when the nodes it has heard from make a quorum

	reached lane.Reached // the nodes of which any may have it in its queue; the lanes', see claim

	mu    sync.Mutex
	nodes []standing
	try   int64     // how many attempts it has made
	nonce string    // the last one's, which is its token
	asked time.Time // when the last one left
	slot  int64     // that he was called for; 0: none
	held  bool      // it has the lock
	has   *Lock     // that it was handed; nil: none
	done  bool      // it is in no queue, or has asked to be taken out: before the first attempt, and after quit

	listens bool // the hall's
}

// A standing is what a waiter knows of himself at a node, from his last attempt: refused,
// he is in its queue; granted, he is not; neither, and the answer is on its way.
type standing struct {
	refused, granted bool
	heard            bool  // told since the attempt began that the lock may be free there
	handed           int64 // the number with which it was handed the lock there, for that attempt; 0: it was not
}

// mine reports whether the waiter has the node's vote by having been handed the lock.
func (s *standing) mine() bool { return s.handed > 0 && (s.refused || s.granted) }

func newHall(lk *Locker) *hall {
	return &hall{locker: lk, lines: make(map[string]*line), voices: make(map[string]*waiter)}
}

// enter puts a call at the end of the line for what it wants.
func (h *hall) enter(a *acquisition) *waiter {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.count++; h.count == 1 {
		h.process = h.locker.opts.host.Token()
	}
	w := &waiter{
		hall: h, want: a, name: h.process + "." + strconv.Itoa(h.count), ticket: h.locker.lanes.Ticket(h.locker.opts.Clock.Now()),
		wake: make(chan struct{}, 1), nodes: make([]standing, len(h.locker.lanes.Lanes)), done: true,
		reached: make(lane.Reached, len(h.locker.lanes.Lanes)),
	}
	l := h.lines[a.line]
	if l == nil {
		l = new(line)
		h.lines[a.line] = l
	} else {
		w.turn = make(chan struct{})
	}
	l.waiters = append(l.waiters, w)
	return w
}

// leave takes a call out of its line, whose next one speaks then.
func (h *hall) leave(w *waiter) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.lines[w.want.line]
	i := slices.Index(l.waiters, w)
	l.waiters = slices.Delete(l.waiters, i, i+1)
	switch {
	case len(l.waiters) == 0:
		delete(h.lines, w.want.line)
	case i == 0:
		close(l.waiters[0].turn)
	}
	if w.has == nil { // else it hears of more nodes for a moment (Lock.deafen)
		delete(h.voices, w.name)
	}
	if w.listens {
		if h.ears--; h.ears == 0 && h.deafen != nil {
			h.quiet = time.AfterFunc(linger, h.hush)
		}
	}
}

// said notes, for those behind, why the first of a line has no lock; and whether that is
// since another library has it.
func (h *hall) said(w *waiter, why *QuorumError) {
	h.mu.Lock()
	defer h.mu.Unlock()
	last := *why // ours: why will say what ended it
	h.lines[w.want.line].last = &last
	if why.foreign(&h.locker.opts) {
		h.met = h.locker.opts.Clock.Now()
	}
}

// hasMet reports whether another library has lately had a lock that was waited for here.
func (h *hall) hasMet(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.met.IsZero() && elapsed(h.met, now) < remembered
}

// word is why somebody in a line who has not spoken has no lock.
func (h *hall) word(w *waiter, cause error) *QuorumError {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := QuorumError{Op: wire.Acquire.String(), N: len(w.nodes), Need: h.locker.opts.Quorum, Kind: ErrHeld}
	if last := h.lines[w.want.line].last; last != nil {
		e = *last
	}
	e.Name, e.Cause = w.want.name, cause
	return &e
}

// speaks has w be told what is heard for it: from before its first attempt on, since
// the nodes may call as soon as they have refused.
func (h *hall) speaks(w *waiter) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.voices[w.name] = w
}

// listen has the nodes heard as long as w waits.
func (h *hall) listen(w *waiter) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || w.listens {
		return
	}
	w.listens = true
	h.ears++
	if h.quiet != nil {
		h.quiet.Stop()
		h.quiet = nil
	}
	if h.deafen == nil {
		var ctx context.Context
		ctx, h.deafen = context.WithCancel(context.Background())
		for _, n := range h.locker.lanes.Lanes {
			e := &ear{hall: h, node: n}
			h.ending.Go(func() { e.run(ctx, script.WakeChannel+h.process) })
		}
	}
}

// hush ends listening, unless somebody waits again.
func (h *hall) hush() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.quiet != nil {
		h.deafen()
		h.deafen, h.quiet = nil, nil
	}
}

func (h *hall) close() {
	h.mu.Lock()
	h.closed = true
	if h.quiet != nil {
		h.quiet.Stop()
		h.quiet = nil
	}
	if h.deafen != nil {
		h.deafen()
	}
	h.mu.Unlock()
	h.ending.Wait()
}

// begin is before an attempt: what was heard before is no news for the next one.
func (w *waiter) begin(sent time.Time, token string) (try int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.wake:
	default:
	}
	w.done = false
	clear(w.nodes)
	w.try++
	w.nonce, w.asked = token, sent
	return w.tried()
}

// told takes in a node's answer to an attempt, of which the last one says how it is
// there. One that refuses when we do not wait any more has us in its queue all the same;
// so has one that grants when we have left without the lock, since that is given back
// for a place in the queue.
//
// An answer to an earlier attempt that comes only now says nothing of this one, and takes
// back no more than what was handed over for the earlier one. Who was handed the lock, and
// has it, takes nothing back: an extension may count the node since (OWN_LEAVE in
// docs/model). Its release does.
func (w *waiter) told(i int, try int64, o wire.Status) {
	if o != wire.Granted && o != wire.Held && o != wire.Reserved {
		return
	}
	w.mu.Lock()
	granted := o == wire.Granted
	if try == w.tried() {
		w.nodes[i].granted, w.nodes[i].refused = granted, !granted
		w.vouch(i)
	}
	late := w.done && (!granted || !w.held) && (w.has == nil || w.has.over.Load())
	w.mu.Unlock()
	if late {
		w.bow(i, try)
	}
	w.call()
}

// hear takes in that the lock may be free at a node, or this slot of it, if it is one of those
// that the waiter may have. What it has heard already wakes nobody: a flood of calls must not
// put off the attempt that the first one leads to (rest).
func (w *waiter) hear(i int, slot int64) {
	w.mu.Lock()
	news := !w.nodes[i].heard
	w.nodes[i].heard = true
	if slot > 0 && slot <= w.want.most() {
		w.slot = slot
	}
	w.mu.Unlock()
	if news {
		w.call()
	}
}

// calledFor is the slot that the waiter was called for since he last asked; 0: none.
func (w *waiter) calledFor() (slot int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	slot, w.slot = w.slot, 0
	return slot
}

// call wakes the waiter if there is something to hope for.
func (w *waiter) call() {
	if enough, _, mine := w.chance(); enough || mine > 0 {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

// chance is what an attempt can hope for, now: enough nodes for a quorum; all that had
// refused; and how many the waiter has been handed.
func (w *waiter) chance() (enough, all bool, mine int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	free, refused := 0, 0
	for _, s := range w.nodes {
		switch {
		case s.mine():
			free++
			mine++
		case s.granted, s.heard:
			free++
		case s.refused:
			refused++
		}
	}
	return free >= w.hall.locker.opts.Quorum, refused == 0, mine
}

// quit takes the waiter out of the queues in which he may be: if he has the lock, of those
// who have refused him; else of all, for what was granted has been given back for a place
// in the queue.
func (w *waiter) quit(held bool) {
	w.mu.Lock()
	if w.done {
		w.mu.Unlock()
		return
	}
	w.held, w.done = held, true
	try := w.tried()
	var in []int
	for i, s := range w.nodes {
		if s.refused || !held {
			in = append(in, i)
		}
	}
	w.mu.Unlock()
	for _, i := range in {
		w.bow(i, try)
	}
}

// bow takes the waiter out of a node's queue, and gives back what he was handed there for
// attempts up to this one. If that cannot be told to the node, his lease runs out.
func (w *waiter) bow(i int, try int64) {
	lk := w.hall.locker
	now := lk.opts.Clock.Now()
	c := &lane.Claim{Key: w.want.key, Keys: w.want.keys, Modes: w.want.modes, Waiter: w.name, Ticket: w.ticket, Try: try}
	c.Span(len(lk.lanes.Lanes))
	lk.lanes.Lanes[i].Submit(&lane.Request{Op: wire.Leave, Claim: c, Deadline: now.Add(lk.opts.NodeTimeout), To: lane.Nobody{}}, now)
}
