package redisnode

import (
	"net"
	"slices"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/resp"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/wire"
	"github.com/redis/go-redis/v9"
)

// Exec sends a batch and reads the replies, over the connection that go-redis has made, but without
// go-redis.
//
// No reply of an earlier batch, or to a command of go-redis, is ever taken for one of this batch.
// After each failure Exec closes the connection, whose replies are then out of reach, and the next
// one begins with an empty buffer (receive). Without a failure, Exec has read as many replies as it
// has asked for, and nothing has arrived besides (exchange). go-redis does the same on its side: it
// reads a reply for each of its commands, and closes a connection over which a command failed.
// Neither of them uses the connection while the other does: all calls come from the lane's
// goroutine, and go-redis does nothing by itself with a connection that conn has taken.
func (s *Server) Exec(batch []*lane.Request) error {
	rest, err := s.exchange(batch)
	s.last = time.Now()
	if err != nil {
		s.keep(nil)
		for _, q := range rest {
			q.Read(nil, err)
		}
	}
	return err
}

// exchange sends a batch in one write, and gives each request its reply. After an error, rest are
// the requests that have none. What a command without a script leaves open (wire.NativeAnswer) takes a
// second write. Both together have the time of one.
//
// The server may be unable to send replies while it still receives the batch, since nobody reads
// them yet. It puts them into its output buffer, and goes on reading. A proxy may instead stop
// reading, until the write's deadline ends both: lane.maxBatch keeps a batch in the size of the
// buffers of sockets.
func (s *Server) exchange(batch []*lane.Request) (rest []*lane.Request, err error) {
	// The commands are written before refresh, which may find another server process. It does not
	// know the hashes that the old one had, and so it rejects requests that were meant for that.
	scripts := s.scripts.Load()
	s.out.Reset()
	trailer := noTrailer
	for _, q := range batch {
		q.Shown = "" // or it is what an earlier batch has shown, if this one is sent again
		switch {
		case q.Step() == wire.Plain:
			writePlain(&s.out, q)
			trailer = wholeTrailer
		case scripts.does(q):
			scripts.natives.write(&s.out, q)
			if q.Op == wire.Extend {
				trailer = wholeTrailer
			}
		default:
			s.write(scripts, q, q.Step())
			if q.Op == wire.Extend {
				trailer = max(trailer, markerTrailer)
			}
		}
	}
	writeTrailer(&s.out, scripts, trailer)
	conn, err := s.refresh()
	if err != nil {
		return batch, err
	}
	if err := conn.SetWriteDeadline(time.Now().Add(s.options.WriteTimeout)); err != nil {
		return batch, err
	}
	if _, err := conn.Write(s.out.Bytes()); err != nil {
		return batch, err
	}
	if err := conn.SetReadDeadline(time.Now().Add(s.options.ReadTimeout)); err != nil {
		return batch, err
	}
	open := s.opened[:0] // which are read when all replies are here
	defer func() { clear(open); s.opened = open[:0] }()
	for i, q := range batch {
		switch {
		case q.Step() == wire.Plain:
			a, err := readPlain(&s.in, q.Claim.Token)
			if err != nil {
				return slices.Concat(without(open), batch[i:]), err
			}
			s.stale = s.stale || readOnly(a.Refused)
			open = append(open, openAnswer{request: q, plain: a})
		case scripts.does(q):
			a, err := readNative(&s.in, q.Op)
			if err != nil {
				return slices.Concat(without(open), batch[i:]), err
			}
			open = append(open, openAnswer{request: q, native: a})
		default:
			if err := s.read(q); err != nil {
				return slices.Concat(without(open), batch[i:]), err
			}
		}
	}
	err = readTrailer(&s.in, trailer, &s.said, &s.marker)
	if err == nil {
		err = s.in.Done()
	}
	if err != nil {
		return without(open), err
	}
	for _, q := range batch {
		if q.Op == wire.Extend {
			q.Shown = s.said.Marker
		}
	}
	if len(open) == 0 {
		return nil, nil
	}
	return s.complete(conn, scripts, open)
}

// complete gives answers without a script their trailer, and sends in a second write what they leave
// open.
func (s *Server) complete(conn net.Conn, scripts *hashes, open []openAnswer) (rest []*lane.Request, err error) {
	s.out.Reset()
	next, trailer := open[:0], noTrailer
	for i := range open {
		a := &open[i]
		if a.request.Step() == wire.Plain {
			a.plain.Trailer = &s.said
			a.request.ReadPlain(&a.plain)
			continue
		}
		a.native.Trailer = &s.said
		if step, more := a.request.ReadNative(&a.native); more {
			s.write(scripts, a.request, step)
			if a.request.Op == wire.Extend {
				// Once more: it comes after the extension. If it gets lost, what the first write has shown is too old.
				trailer, a.request.Shown = markerTrailer, ""
			}
			next = append(next, openAnswer{request: a.request, called: step == wire.Wake})
		}
	}
	if len(next) == 0 {
		return nil, nil
	}
	writeTrailer(&s.out, scripts, trailer)
	if _, err := conn.Write(s.out.Bytes()); err != nil {
		return without(next), err
	}
	for i, a := range next {
		if a.called {
			_, err = s.in.Reply()
			if wire.IsReply(err) {
				err = nil // the waiter asks with its next heartbeat
			}
		} else {
			err = s.read(a.request)
		}
		if err != nil {
			return without(next[i:]), err
		}
	}
	var said wire.Trailer
	if err := readTrailer(&s.in, trailer, &said, &s.marker); err != nil {
		return nil, err
	}
	for _, a := range next {
		if a.request.Op == wire.Extend {
			a.request.Shown = said.Marker
		}
	}
	return nil, s.in.Done()
}

// read reads the reply of a request's script.
func (s *Server) read(q *lane.Request) error {
	value, err := s.in.Reply()
	if err != nil {
		if !wire.IsReply(err) {
			return err
		}
		s.stale = s.stale || readOnly(err)
	}
	q.Read(value, err)
	return nil
}

// readOnly: the node's name may have moved to another server, its new master.
func readOnly(err error) bool { return err != nil && redis.HasErrorPrefix(err, "READONLY") }

// receive makes in read from a connection.
func (s *Server) receive(conn *net.Conn) {
	if s.reads != conn {
		s.reads = conn
		s.in.Reset(*conn)
	}
}

// write writes the call of a script for a request. It allocates nothing.
func (s *Server) write(scripts *hashes, q *lane.Request, step wire.Op) {
	w, c := &s.out, q.Claim
	switch step {
	case wire.Wake:
		w.Begin("eval").String(script.Wake).Int(1).String(c.Keys[0])
	case wire.Break:
		w.Begin("eval").String(script.Break).Int(int64(len(c.Keys)))
		for _, key := range c.Keys {
			w.String(key)
		}
		w.String(c.Token).String(c.Modes).Int(c.Slot).Int(c.Broken)
	case wire.Choose:
		w.Begin("eval").String(script.Choose).Int(2).String(script.Told).String(script.Choice)
		for _, arg := range q.Args {
			w.String(arg)
		}
	case wire.Merge:
		w.Begin("eval").String(script.Merge).Int(2).String(script.Fences).String(script.Belows)
		for _, arg := range q.Args {
			w.String(arg)
		}
	case wire.Acquire:
		call(w, scripts.acquire, c.Keys, "")
		w.String(c.Token).Int(c.Millis).Int(q.Number).Int(q.Latest).String(q.Mark).Int(q.Ticket).
			String(c.Waiter).Int(c.Lease).String(c.Modes).Int(c.Slots)
		buckets(w, c.Keys)
	case wire.Raise:
		call(w, script.Raise.Hash, c.Keys, "")
		w.String(c.Token).Int(c.Fence).String(c.Modes)
		buckets(w, c.Keys)
	case wire.Extend:
		call(w, script.Extend.Hash, c.Keys, "")
		w.String(c.Token).Int(c.Millis).String(c.Modes)
	case wire.Release:
		call(w, script.Release.Hash, c.Keys, "")
		w.String(c.Token).String(c.Modes).Int(c.Slot)
	case wire.Yield:
		call(w, script.Yield.Hash, c.Keys, "")
		w.String(c.Token).Int(c.Ticket).String(c.Waiter).Int(c.Lease).Int(q.Latest).String(c.Modes).Int(c.Slot)
	case wire.Leave:
		call(w, script.Leave.Hash, c.Keys, "")
		w.String(c.Waiter).Int(c.Ticket).String(c.Modes)
	case wire.Inspect:
		call(w, script.Inspect.Hash, c.Keys, scripts.marker)
		buckets(w, c.Keys[:1])
	}
	w.End()
}

// call begins the call of a script with these keys, and one more if it is not empty.
func call(w *resp.Writer, hash string, keys []string, more string) {
	n := len(keys)
	if more != "" {
		n++
	}
	w.Begin("evalsha").String(hash).Int(int64(n))
	for _, key := range keys {
		w.String(key)
	}
	if more != "" {
		w.String(more)
	}
}

// buckets adds the buckets of keys.
func buckets(w *resp.Writer, keys []string) {
	for _, key := range keys {
		w.String(*script.Bucket(key))
	}
}
