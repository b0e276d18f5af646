// Package faultproxy breaks the network between clients and a Redis node:
// delays, black holes in both directions or in one, resets, lost replies.
//
// A [Path] is that network, over any pair of connections; a [Proxy] puts one in
// front of a TCP address on the loopback interface. A Path waits on channels and
// timers only, never on a mutex or a socket of its own, so that it also works
// over pipes in a testing/synctest bubble, where its delays are exact.
//
// The package does not import testing: the chaos harness and the benchmarks use
// it outside of tests.
package faultproxy

import (
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

type direction int

const (
	requests direction = iota // towards the server
	replies                   // towards the client
)

// A Path is the network between one server and its clients. It starts healthy.
// Every method is safe from any goroutine, and takes effect for bytes that have
// not yet left the path, on existing connections too.
type Path struct {
	mu sync.Mutex // protects what follows, to stats; never held while waiting

	delay   time.Duration
	jitter  time.Duration
	latency func() time.Duration
	cut     [2]bool
	hung    bool
	drops   int
	tears   int
	closed  bool
	changed chan struct{} // closed and made anew when one of the above changes
	links   map[*link]struct{}
	stats   Stats

	pumps sync.WaitGroup
}

// Stats counts what has come in since the path was made, whether or not it was
// ever delivered.
type Stats struct {
	Accepted     int64 // connections
	RequestBytes int64 // from clients
	ReplyBytes   int64 // from the server
}

// NewPath returns a healthy path without connections.
func NewPath() *Path {
	return &Path{changed: make(chan struct{}), links: map[*link]struct{}{}}
}

// SetDelay makes a round trip last d longer: bytes arrive d/2 later, however many they are. Bytes that
// are already under way keep their time.
func (p *Path) SetDelay(d time.Duration) { p.set(func() { p.delay = d }) }

// SetJitter makes every chunk arrive up to d later, each by another time, in addition to SetDelay. Chunks
// of one connection stay in order; those of several connections overtake each other.
func (p *Path) SetJitter(d time.Duration) { p.set(func() { p.jitter = d }) }

// SetLatency makes every chunk arrive later by the result of draw, in addition to both: so a run can be
// repeated. The path never calls draw twice at once, and draw must not use the path. Nil ends that.
func (p *Path) SetLatency(draw func() time.Duration) { p.set(func() { p.latency = draw }) }

// Cut makes a black hole: nothing passes in either direction, not even the end of a connection, and
// neither side is told. What is sent meanwhile is kept, without limit.
func (p *Path) Cut() { p.set(func() { p.cut = [2]bool{true, true} }) }

// CutRequests holds back what clients send; replies still pass.
func (p *Path) CutRequests() { p.set(func() { p.cut[requests] = true }) }

// CutReplies holds back what the server sends; requests still arrive and are
// executed.
func (p *Path) CutReplies() { p.set(func() { p.cut[replies] = true }) }

// Heal ends the cuts and delivers what they held back, as a network does that was only interrupted: late
// requests are executed, even those of clients that have closed their connections since.
func (p *Path) Heal() { p.set(func() { p.cut = [2]bool{} }) }

// HealByReset ends the cuts and resets every connection, as a network does whose routers have forgotten
// the connections: what was held back is lost.
func (p *Path) HealByReset() {
	p.set(func() {
		p.cut = [2]bool{}
		p.abortLocked()
	})
}

// ResetAll resets every connection (RST, not FIN), losing what is on its way.
// New ones can be made at once.
func (p *Path) ResetAll() { p.set(p.abortLocked) }

// Forget makes a black hole of every connection that there is, as a firewall or a NAT does that has dropped
// them from its table: what either side sends is lost, and neither is told, not even that the other one has closed
// it. New connections can be made at once. A forgotten connection ends when the client closes it.
func (p *Path) Forget() {
	p.set(func() {
		for l := range p.links {
			l.forgotten = true
		}
	})
}

// Hang makes the server look stopped: connections can be made and requests sent, but the server reads
// none until Resume. Unlike CutRequests this is no fault of the network, so healing does not end it.
func (p *Path) Hang() { p.set(func() { p.hung = true }) }

// Resume ends Hang; the server gets all that has been sent since.
func (p *Path) Resume() { p.set(func() { p.hung = false }) }

// DropReplies loses the next n replies after their commands were executed: each of the next n chunks that
// would reach a client, on any connection, is dropped and its connection reset. A chunk is what the
// server wrote at once: it may answer several pipelined commands or a client's handshake, or be a
// published message. Zero stops it.
func (p *Path) DropReplies(n int) { p.set(func() { p.drops = n }) }

// TearReplies is DropReplies, but the first half of each chunk, and of those that
// wait behind it, arrives before its connection is reset: of the replies to a
// pipeline the first ones, and perhaps a part of one.
func (p *Path) TearReplies(n int) { p.set(func() { p.tears = n }) }

// Stats returns the counters.
func (p *Path) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stats
}

// Join connects a client's connection with the server's and returns at once. The
// path owns both from now on and closes them. On a closed path it closes them
// right away and returns false.
//
// A connection with a method Reset() error is reset by that; a TCP connection is
// sent RST; any other is only closed.
func (p *Path) Join(client, server net.Conn) bool {
	l := &link{path: p, client: client, server: server, gone: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = client.Close()
		_ = server.Close()
		return false
	}
	p.links[l] = struct{}{}
	p.stats.Accepted++
	l.start()
	return true
}

// Handshake takes as long as making a connection over the path: a round trip, or for ever while the path
// is cut. A caller that dials pipes needs it to make them resemble a network; with TCP the kernel makes
// the connection to the Proxy, cut or not.
func (p *Path) Handshake(ctx context.Context) error {
	p.mu.Lock()
	arrival := time.Now().Add(p.legLocked() + p.legLocked())
	p.mu.Unlock()
	if !sleepUntil(arrival, ctx.Done()) {
		return context.Cause(ctx)
	}
	for {
		p.mu.Lock()
		cut, changed := p.cut != [2]bool{} && !p.closed, p.changed
		p.mu.Unlock()
		if !cut {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Close closes all connections and waits until no goroutine is left.
func (p *Path) Close() {
	p.mu.Lock()
	p.closed = true
	p.wakeLocked()
	for l := range p.links {
		l.endLocked(false)
	}
	p.mu.Unlock()
	p.pumps.Wait()
}

// set changes the path and wakes all goroutines that wait on it.
func (p *Path) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	p.wakeLocked()
}

func (p *Path) wakeLocked() {
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *Path) abortLocked() {
	for l := range p.links {
		l.endLocked(true)
	}
}

// A fate is what happens to a chunk at the end of the path.
type fate int

const (
	arrives fate = iota
	dropped
	torn
)

// leave is called when a chunk is due at the far end. If wait is nil, the chunk leaves now, with this
// fate; otherwise the caller asks again when wait is closed.
func (p *Path) leave(d direction, last bool) (f fate, wait <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.cut[d] || d == requests && p.hung:
		return arrives, p.changed
	case d == requests || last:
	case p.drops > 0:
		p.drops--
		return dropped, nil
	case p.tears > 0:
		p.tears--
		return torn, nil
	}
	return arrives, nil
}

// enter counts a chunk, and returns the time at which it is due at the far end.
func (p *Path) enter(d direction, n int) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d == requests {
		p.stats.RequestBytes += int64(n)
	} else {
		p.stats.ReplyBytes += int64(n)
	}
	late := p.legLocked()
	if late <= 0 {
		return time.Time{} // due already; this avoids reading the clock
	}
	return time.Now().Add(late)
}

// legLocked is the delay of a chunk in one direction.
func (p *Path) legLocked() time.Duration {
	d := p.delay / 2
	if p.jitter > 0 {
		d += rand.N(p.jitter)
	}
	if p.latency != nil {
		d += p.latency()
	}
	return d
}

// sleepUntil reports false if stop came first.
func sleepUntil(t time.Time, stop <-chan struct{}) bool {
	if t.IsZero() {
		return true
	}
	d := time.Until(t)
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-stop:
		return false
	}
}
