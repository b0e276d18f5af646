package faultproxy

import (
	"bytes"
	"net"
	"sync"
	"time"
)

// chunkSize is how much is read at once. A reply or request of the library is much smaller, so it is
// one chunk.
const chunkSize = 32 << 10

// buffers has what readers read into: tests make thousands of connections that live for a moment.
var buffers = sync.Pool{New: func() any { return new([chunkSize]byte) }}

// A link is one connection over a path. It has four goroutines: in each direction a reader, which waits
// for nothing but its connection, and a writer, which waits until a chunk may arrive. The buffer between
// the two makes sure that a delay does not limit the throughput: the reader records the time of each
// chunk and reads the next one.
type link struct {
	path           *Path
	client, server net.Conn
	gone           chan struct{} // closed when the link has ended
	ended          bool          // guarded by path.mu, like forgotten
	forgotten      bool          // see Path.Forget
}

// start is called with path.mu held.
func (l *link) start() {
	up, down := newBuffer(), newBuffer()
	l.path.pumps.Go(func() { l.read(l.client, requests, up) })
	l.path.pumps.Go(func() { l.read(l.server, replies, down) })
	l.path.pumps.Go(func() { l.deliverRequests(up) })
	l.path.pumps.Go(func() { l.deliverReplies(down) })
}

// read moves what comes from one end into the buffer, and at last the end of the connection itself: over
// a cut path the far side does not learn that a connection was closed.
func (l *link) read(from net.Conn, d direction, to *buffer) {
	buf := buffers.Get().(*[chunkSize]byte)
	defer buffers.Put(buf)
	for {
		n, err := from.Read(buf[:])
		if l.lost() {
			if err == nil {
				continue
			}
			if d == requests {
				l.end(false)
			}
			return
		}
		if n > 0 {
			to.put(chunk{due: l.path.enter(d, n), data: bytes.Clone(buf[:n])})
		}
		if err != nil {
			to.put(chunk{due: l.path.enter(d, 0), last: true})
			return
		}
	}
}

// lost reports whether the network has forgotten the connection.
func (l *link) lost() bool {
	l.path.mu.Lock()
	defer l.path.mu.Unlock()
	return l.forgotten
}

// deliverRequests ends when the client has closed the connection and the server has been told. It does
// not end the link: the server still answers what it was sent before, and then closes its side.
func (l *link) deliverRequests(from *buffer) {
	refused := false
	for {
		c, ok := from.take(l.gone)
		if !ok {
			return
		}
		if _, ok := l.await(c, requests); !ok {
			return
		}
		if c.last {
			closeWrite(l.server)
			return
		}
		if !refused {
			// An error means that the server is dead. The client learns that from the
			// replies' direction, with its delay.
			_, err := l.server.Write(c.data)
			refused = err != nil
		}
	}
}

// deliverReplies ends when the server has closed the connection, or lost it.
func (l *link) deliverReplies(from *buffer) {
	refused := false
	for {
		c, ok := from.take(l.gone)
		if !ok {
			return
		}
		f, ok := l.await(c, replies)
		if !ok {
			return
		}
		if f == torn {
			all := append(c.data, from.rest()...)
			_, _ = l.client.Write(all[:len(all)/2])
		}
		if c.last || f != arrives {
			l.end(f != arrives)
			return
		}
		if !refused {
			// A client that has closed the connection gets no reply, but its requests must
			// still be delivered and executed, so the link goes on.
			_, err := l.client.Write(c.data)
			refused = err != nil
		}
	}
}

// await returns when the chunk may leave the path, or with false when the link
// has ended.
func (l *link) await(c chunk, d direction) (f fate, ok bool) {
	if !sleepUntil(c.due, l.gone) {
		return arrives, false
	}
	for {
		f, wait := l.path.leave(d, c.last)
		if wait == nil {
			return f, true
		}
		select {
		case <-wait:
		case <-l.gone:
			return arrives, false
		}
	}
}

func (l *link) end(reset bool) {
	l.path.mu.Lock()
	defer l.path.mu.Unlock()
	l.endLocked(reset)
}

// endLocked closes both connections, which ends the readers and the writers. It does not wait for them.
func (l *link) endLocked(reset bool) {
	if l.ended {
		return
	}
	l.ended = true
	delete(l.path.links, l)
	close(l.gone)
	for _, conn := range []net.Conn{l.client, l.server} {
		if reset {
			abort(conn)
		} else {
			_ = conn.Close()
		}
	}
}

// abort closes a connection so that the peer sees it reset.
func abort(conn net.Conn) {
	switch c := conn.(type) {
	case interface{ Reset() error }:
		_ = c.Reset()
	case *net.TCPConn:
		_ = c.SetLinger(0)
		_ = c.Close()
	default:
		_ = c.Close()
	}
}

// closeWrite tells the server that the client has closed the connection. A connection that cannot be
// closed by half is closed as a whole: the client would not have read any more replies.
func closeWrite(conn net.Conn) {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = conn.Close()
}

// A chunk is the data of one read, or the end of its direction.
type chunk struct {
	due  time.Time
	data []byte
	last bool
}

// A buffer keeps chunks in order and never refuses one, however long it gets: the path must not add the
// back-pressure that a kernel would put on a sender.
type buffer struct {
	mu    sync.Mutex // protects queue; never held while waiting
	queue []chunk
	ready chan struct{} // has a value when there may be something to take
}

func newBuffer() *buffer { return &buffer{ready: make(chan struct{}, 1)} }

func (l *buffer) put(c chunk) {
	l.mu.Lock()
	l.queue = append(l.queue, c)
	l.mu.Unlock()
	select {
	case l.ready <- struct{}{}:
	default:
	}
}

// rest takes the data of all chunks that are there now.
func (l *buffer) rest() (data []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.queue {
		data = append(data, c.data...)
	}
	l.queue = nil
	return data
}

// take waits for a chunk, or returns false when stop is closed.
func (l *buffer) take(stop <-chan struct{}) (chunk, bool) {
	for {
		l.mu.Lock()
		if len(l.queue) > 0 {
			c := l.queue[0]
			l.queue[0] = chunk{} // release the data
			l.queue = l.queue[1:]
			l.mu.Unlock()
			return c, true
		}
		l.mu.Unlock()
		select {
		case <-l.ready:
		case <-stop:
			return chunk{}, false
		}
	}
}
