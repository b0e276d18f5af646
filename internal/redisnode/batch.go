package redisnode

import (
	"net"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/resp"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/wire"
	"github.com/redis/go-redis/v9"
)

// Batches are sent, and their replies are read, over the connection that go-redis has made, but without go-redis.
//
// No reply is ever taken for that to another request. Replies come in the order of the commands, and Receive reads as
// many as Send has asked for. Each failure closes the connection, whose replies are then out of reach, and the next
// connection begins with an empty buffer (receive). Bytes behind the last reply that was owed are an error. go-redis does
// the same on its side: it reads a reply for each of its commands, and closes a connection that has failed. The two never
// use the connection at once: a Server calls go-redis only when no reply is owed, and go-redis does nothing by itself with
// a connection that s.conn has taken.

// Encode writes the commands of a batch into a buffer, which Send sends, and the trailer behind them, if one is needed.
func (s *Server) Encode(batch []*lane.Request) {
	scripts := s.scripts.Load()
	s.out.Reset()
	trailer := noTrailer
	for _, q := range batch {
		q.Shown = "" // else a batch that is sent again would keep what the first one has shown
		step := q.Step()
		switch {
		case step == wire.Plain:
			writePlain(&s.out, q)
		case scripts.does(q):
			scripts.natives.write(&s.out, q)
		default:
			s.write(scripts, q, step)
		}
		trailer = max(trailer, scripts.trailer(q, step))
	}
	writeTrailer(&s.out, scripts, trailer)
}

// trailer returns which trailer (the commands at the end of a write: noTrailer, and so on) q needs. step is q.Step().
func (h *hashes) trailer(q *lane.Request, step wire.Op) int {
	switch {
	case step == wire.Plain, q.Op == wire.Extend && h.does(q):
		return wholeTrailer
	case q.Op == wire.Extend:
		return markerTrailer
	}
	return noTrailer
}

// Send sends what Encode has written, in one write. An error means that the connection failed; Send has closed it.
func (s *Server) Send() error {
	conn := s.socket.Load()
	if conn == nil {
		return net.ErrClosed // Interrupt was called, or a batch has failed
	}
	s.owed.Add(1)
	err := (*conn).SetWriteDeadline(time.Now().Add(s.options.WriteTimeout))
	if err == nil {
		_, err = (*conn).Write(s.out.Bytes())
	}
	if err != nil {
		s.keep(nil) // this ends a Receive, too
	}
	return err
}

// Receive reads the replies to a batch (ago, for which the server has owed them, shortens ReadTimeout), and gives each
// request its own. After an error, the connection is closed: the unanswered requests may have been carried out, or may yet
// be.
func (s *Server) Receive(batch []*lane.Request, ago time.Duration) (unanswered []*lane.Request, err error) {
	conn := s.socket.Load()
	if conn == nil {
		return batch, net.ErrClosed
	}
	if err = (*conn).SetReadDeadline(time.Now().Add(s.options.ReadTimeout - ago)); err != nil {
		unanswered = batch
	} else {
		unanswered, err = s.replies(batch)
	}
	clear(s.opened)
	s.opened = s.opened[:0]
	s.last = time.Now()
	if err != nil {
		s.keep(nil)
	}
	return unanswered, err
}

// replies does what Receive does, with the deadline that is set, and closes nothing.
func (s *Server) replies(batch []*lane.Request) (unanswered []*lane.Request, err error) {
	scripts := s.scripts.Load() // as at Encode: the node is joined again only when no reply is owed
	trailer := noTrailer
	for i, q := range batch {
		step := q.Step()
		switch {
		case step == wire.Plain:
			a := openAnswer{request: q, isPlain: true}
			a.plain, err = readPlain(&s.in, q.Claim.Token)
			s.outdate(a.plain.Refused)
			s.opened = append(s.opened, a)
		case scripts.does(q):
			a := openAnswer{request: q}
			a.native, err = readNative(&s.in, q.Op)
			s.opened = append(s.opened, a)
		default:
			if err = s.read(q); err != nil {
				return without(s.opened, batch[i:]), err
			}
		}
		if err != nil {
			return without(s.opened, batch[i+1:]), err
		}
		trailer = max(trailer, scripts.trailer(q, step))
	}
	err = readTrailer(&s.in, trailer, &s.said, &s.marker)
	if s.owed.Add(-1) == 0 && err == nil {
		err = s.in.Done()
	}
	if err != nil {
		return without(s.opened, nil), err
	}
	for i := range s.opened {
		if a := &s.opened[i]; a.isPlain {
			a.plain.Trailer = &s.said
			a.request.ReadPlain(&a.plain)
		} else {
			a.native.Trailer = &s.said
			a.request.ReadNative(&a.native)
		}
	}
	for _, q := range batch {
		if q.Op == wire.Extend {
			q.Shown = s.said.Marker
		}
	}
	return nil, nil
}

// read reads the reply of the script for q, and gives it to q. An error: the connection failed, and q has none.
func (s *Server) read(q *lane.Request) error {
	value, err := s.in.Reply()
	if err != nil {
		if !wire.IsReply(err) {
			return err
		}
		s.outdate(err)
	}
	q.Read(value, err)
	return nil
}

// outdate marks the connection to be replaced if err, an error that the server sent, is READONLY (nil is not): the
// node's host name may lead to another server since, the new master.
func (s *Server) outdate(err error) {
	if err != nil && redis.HasErrorPrefix(err, "READONLY") {
		s.stale.Store(true)
	}
}

// receive makes s.in read from conn, with an empty buffer if it has read from another connection before.
func (s *Server) receive(conn *net.Conn) {
	if s.reads != conn {
		s.reads = conn
		s.in.Reset(*conn)
	}
}

// write writes the call of the script for a request's step into s.out. It allocates nothing.
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
		w.String(q.Mark)
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

// call begins the call of a loaded script by hash, with keys, and a last key, more ("": none). Arguments and w.End follow.
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

// buckets writes, for each key, the number of its counter in the table of fences (script.Bucket).
func buckets(w *resp.Writer, keys []string) {
	for _, key := range keys {
		w.String(*script.Bucket(key))
	}
}
