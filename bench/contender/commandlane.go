package contender

import (
	"net"

	"github.com/quorumlock/redlock/internal/resp"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/wire"
)

// A commandLane is the one connection to a node. It is half duplex: it writes a batch, reads all its
// replies, and only then takes the next one.
//
// A node that cannot be reached, or whose connection has failed, says no to everything and is not
// dialled again.
type commandLane struct {
	floorQueue[commandRequest]
	conn   net.Conn // nil: the node could not be reached
	broken error    // why there are no further replies
	ttl    int64    // in milliseconds
	marker string   // the last one, so that the next one needs no memory
	out    resp.Writer
	in     resp.Reader
}

type commandRequest struct {
	step   wire.Op // Plain, Extend or Release
	lock   *commandLock
	ballot *floorBallot
	yes    bool // the answer
}

// startCommandLane dials the node here, so that close has a connection to close. On loopback, a node
// that is down or hangs holds nobody up by that.
func startCommandLane(addr string, ttl int64) *commandLane {
	l := &commandLane{floorQueue: newFloorQueue[commandRequest](), ttl: ttl}
	if l.conn, l.broken = net.Dial("tcp", addr); l.broken == nil {
		l.in.Reset(l.conn)
	}
	go l.run()
	return l
}

// close also ends a read that waits for a node.
func (l *commandLane) close() {
	l.stop()
	if l.conn != nil {
		_ = l.conn.Close()
	}
}

func (l *commandLane) run() {
	defer close(l.ended)
	l.load(script.Release, script.Extend)
	var spare []commandRequest
	for {
		batch, ok := l.take(spare)
		if !ok {
			return
		}
		l.exchange(batch)
		clear(batch)
		spare = batch
	}
}

// load makes the node know scripts. One that does not take them answers their calls with errors.
func (l *commandLane) load(scripts ...script.Script) {
	l.out.Reset()
	for _, s := range scripts {
		l.out.Begin("script").String("load").String(s.Source).End()
	}
	l.flush()
	for range scripts {
		l.text("")
	}
}

// exchange has a batch answered.
func (l *commandLane) exchange(batch []commandRequest) {
	l.out.Reset()
	for i := range batch {
		l.write(&batch[i])
	}
	last := trailerOf(batch)
	l.writeTrailer(last)
	l.flush()
	for i := range batch {
		batch[i].yes = l.read(&batch[i])
	}
	l.readTrailer(last)
	for i := range batch {
		batch[i].ballot.vote(batch[i].yes)
	}
}

// write writes what package redisnode does for the same step. Extensions and releases are the scripts: a
// server may have commands that take their place, and this does not use them.
func (l *commandLane) write(r *commandRequest) {
	w, k := &l.out, r.lock
	switch r.step {
	case wire.Plain:
		w.Begin("set").String(k.key).String(k.token).String("nx").String("px").Int(l.ttl).End()
		w.Begin("zadd").String(script.Fences).String("gt").String("ch").Int(k.number).String(*script.Bucket(k.key)).End()
		w.Begin("getrange").String(k.key).Int(0).Int(wire.MostOfToken - 1).End()
		w.Begin("exists").String(k.key + script.QueueSuffix).End()
	case wire.Extend:
		w.Begin("evalsha").String(script.Extend.Hash).Int(1).String(k.key).String(k.token).Int(l.ttl).String("x").End()
	case wire.Release:
		w.Begin("evalsha").String(script.Release.Hash).Int(1).String(k.key).String(k.token).String("x").Int(0).End()
	}
}

// read reads the replies to write, and reports whether the node has granted, extended or released the lock.
func (l *commandLane) read(r *commandRequest) bool {
	if r.step != wire.Plain {
		return l.number() == 1
	}
	set := l.text("OK") == "OK"
	l.number()
	l.text(r.lock.token)
	l.number()
	return set
}

// trailerOf gives the step on which the trailer of a batch depends: an acquire needs all of it, an
// extension the marker, and a release nothing.
func trailerOf(batch []commandRequest) wire.Op {
	last := wire.Release
	for i := range batch {
		switch batch[i].step {
		case wire.Plain:
			return wire.Plain
		case wire.Extend:
			last = wire.Extend
		}
	}
	return last
}

// writeTrailer asks for a script that the node knows, as the library does. Which one it is does not matter.
func (l *commandLane) writeTrailer(last wire.Op) {
	if last == wire.Release {
		return
	}
	l.out.Begin("mget").String(script.Marker).End()
	if last == wire.Plain {
		l.out.Begin("time").End()
		l.out.Begin("script").String("exists").String(script.Release.Hash).End()
	}
}

func (l *commandLane) readTrailer(last wire.Op) {
	if last == wire.Release {
		return
	}
	if l.list(1) {
		l.marker = l.text(l.marker)
	}
	if last != wire.Plain {
		return
	}
	if l.list(2) {
		l.decimal()
		l.decimal()
	}
	if l.list(1) {
		l.number()
	}
}

// flush sends what was written, in one write.
func (l *commandLane) flush() {
	if l.broken == nil {
		_, l.broken = l.conn.Write(l.out.Bytes())
	}
}

// Each of these takes the next reply; an error that the node has sent is one, too.

func (l *commandLane) number() int64  { return nextReply(l, l.in.Int) }
func (l *commandLane) decimal() int64 { return nextReply(l, l.in.Decimal) }
func (l *commandLane) text(known string) string {
	return nextReply(l, func() (string, error) { return l.in.String(known) })
}
func (l *commandLane) list(n int) bool {
	return nextReply(l, func() (bool, error) { return l.in.List(n) })
}

func nextReply[T any](l *commandLane, read func() (T, error)) (v T) {
	if l.broken != nil {
		return v
	}
	v, err := read()
	if err != nil && !wire.IsReply(err) {
		l.broken = err
	}
	return v
}
