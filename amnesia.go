package redlock

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/seam"
)

// A node that was restarted without its data grants again what it had granted, and
// to a client it looks as it always did: the connection is made anew, and the next
// SET NX succeeds. So a node has to prove that it has not forgotten, with every
// grant.
//
// It has a marker, a key without a TTL, which names the server's process (run_id)
// and the moment at which the marker was written. The acquire script grants only
// if the marker is the one that the client knows:
//
//   - Restarted without data, flushed, or made a copy of an empty server: there is
//     no marker.
//   - Restarted with data (of which the last second may be missing), a replica that
//     was promoted, or a copy of another server: the marker is of another process.
//     Whoever connects compares it with INFO and writes a new one; and for those
//     whose connection a proxy has kept, the script carries the run_id in its text,
//     so that the new process does not know it (NOSCRIPT). So does that of a release,
//     which may hand the lock to another.
//
// A node has no vote until its marker is as old as Options.Quarantine, which is
// longer than any lock: whatever it has forgotten has ended by then. Its grants
// are made, so that the lock is there too, but they are no votes.
//
// The same goes for a node whose clock was found to have been set, as it may have
// dropped keys early; but only for this client, since it may as well be our own
// clock that is wrong.

// errForgot is how the acquire script says that the marker is not the one.
var errForgot = errors.New("it has lost its data, or is another server now")

// A memory is what a Locker knows of a node's: whether it can have forgotten. All
// connections to the node share it.
type memory struct {
	node   int
	name   string
	opts   *Options
	clocks *clocks
	script atomic.Pointer[hashes] // of the scripts that are for this server

	mu    sync.Mutex
	mark  string    // what the marker says
	until time.Time // no vote before this
	why   error
	skew  time.Duration // how far its clock is from the others', if that is too far
}

func newMemory(node int, name string, o *Options) *memory {
	return &memory{node: node, name: name, opts: o, clocks: o.clocks}
}

func (m *memory) now() time.Time { return m.opts.Clock.Now() }

// marked reports whether the node is to have a marker.
func (m *memory) marked() bool { return m.opts.Quarantine > 0 }

// runID is the part of their text by which the scripts that grant know their server.
func (m *memory) runID(id string) string {
	if !m.marked() {
		return ""
	}
	return id
}

// hashes are those of the scripts that have the server's run_id in their text.
type hashes struct{ acquire, release string }

// joined takes in what the node said when it was joined at some time after sent.
func (m *memory) joined(mark seam.Mark, sent time.Time) {
	now := m.now()
	m.heard(mark.Now, sent, now)
	_, written, _ := strings.Cut(mark.Value, ":")
	born, _ := strconv.ParseInt(written, 10, 64)
	age := max(0, time.UnixMicro(mark.Now).Sub(time.UnixMilli(born)))
	why := fmt.Errorf("it was new, restarted, or had lost its data, %v ago", age.Round(time.Millisecond))
	switch {
	case mark.Before == "":
		why = errors.New("it is new, or has lost its data")
	case mark.Before != mark.Value:
		why = errors.New("it was restarted, or is another server now")
	}
	m.suspend(now, m.opts.Quarantine-age, why, func() bool {
		// As it was: our own clock says until when, and not the node's.
		if mark.Value == m.mark && m.script.Load() != nil {
			return false
		}
		m.mark = mark.Value
		id := m.runID(seam.RunID(mark.Value))
		m.script.Store(&hashes{script.Acquire(id).Hash, script.Release(id).Hash})
		return true
	})
}

// suspend takes the node's vote away for some time, if so it is to be, which is
// decided under the mutex: the marker must not be there without its quarantine.
func (m *memory) suspend(now time.Time, d time.Duration, why error, so func() bool) {
	m.mu.Lock()
	until := now.Add(d)
	longer := so() && d > 0 && until.After(m.until)
	if longer {
		m.until, m.why = until, why
	}
	m.mu.Unlock()
	if longer {
		m.opts.Hooks.quarantined(m.name, d, why)
	}
}

// heard takes in the node's time.
func (m *memory) heard(micros int64, sent, now time.Time) {
	step, skew := m.clocks.sample(m.node, sent, now, time.UnixMicro(micros))
	m.mu.Lock()
	m.skew = skew
	m.mu.Unlock()
	if step != 0 {
		m.opts.Hooks.clockStep(m.name, step)
		m.suspend(now, m.opts.Quarantine, stepError(step), m.marked)
	}
}

// quarantine is for how long the node has no vote yet, and why. It goes by the
// monotonic clock alone: when in doubt, longer. Under the mutex.
func (m *memory) quarantine(now time.Time) (rest time.Duration, why error) {
	return max(0, m.until.Sub(now)), m.why
}

// vouches reports whether it counts that the node has handed somebody a lock, and said this
// of its marker and its time; his request for it left at sent, and was answered by a node that
// had a vote.
func (m *memory) vouches(mark string, micros int64, sent time.Time) bool {
	now := m.now()
	m.heard(micros, sent, now)
	m.mu.Lock()
	defer m.mu.Unlock()
	rest, _ := m.quarantine(now)
	return rest == 0 && m.skew == 0 && (mark == m.mark || !m.marked())
}

// send carries a batch to the server. What it asks for is bound to what we know of
// the node when it leaves, and judged by what we know when the replies are here: a
// grant counts if the node had a vote before it was asked, and has one after what
// its replies say of its clock.
func (m *memory) send(p pipeliner, batch []*request) error {
	sent := m.now()
	m.mu.Lock()
	mark := m.mark
	before, _ := m.quarantine(sent)
	m.mu.Unlock()
	for _, q := range batch {
		q.mark = mark
		switch q.step() {
		case opAcquire:
			q.latest = m.clocks.latest(m.node, q.deadline)
		case opYield:
			q.latest = m.clocks.latest(m.node, q.claim.again)
		}
	}
	err := p.pipeline(batch)
	now := m.now()
	for _, q := range batch {
		if q.reply.time > 0 {
			m.heard(q.reply.time, sent, now)
		}
	}
	m.mu.Lock()
	after, why := m.quarantine(now)
	skew := m.skew
	m.mu.Unlock()
	for _, q := range batch {
		r := &q.reply
		switch {
		case r.outcome == Late && after > 0: // its clock was set: that is why
			r.err = why
		case q.op == opExtend || q.op == opRelease || q.op == opLeave || r.outcome != Granted && r.outcome != Held && r.outcome != Reserved:
		case q.op == opInspect && r.mark != mark:
			*r = reply{outcome: Quarantined, err: errForgot}
		case skew != 0:
			r.outcome, r.err = Unfit, skewError{skew, m.opts.MaxNodeSkew}
		case before > 0 || after > 0:
			// Also if it has refused: it has no say in who is to have the lock, and
			// whom it names may have no more than a grant like this one.
			r.outcome, r.rest, r.err = Quarantined, after, why
		}
	}
	return err
}
