package model

import (
	"time"

	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/wire"
)

// The directions of a link.
const (
	requests = iota
	replies
)

// A message is one pipeline, or what it takes to make a connection.
type message struct {
	connect      bool
	join         bool
	hello        wire.Hello // connect, join: what the client tells the node
	mark         wire.Mark  // connect, join: the node's reply
	calls        []Call
	next         cursor // the next command to carry out
	begun        bool   // some commands have been carried out
	admitted     bool   // the function of Node.Before has seen it
	sent         time.Time
	abandoned    bool          // the client has given up the connection
	trailer      *wire.Trailer // if there is an acquire by plain commands, or an extension
	subscription *subscription // not nil: this is a SUBSCRIBE
	epoch        int           // of the node when the connection was made
	id           sim.Seed
	from         *Host

	stream *stream
	back   time.Duration // how long the reply takes

	err      error
	answered time.Time     // when the reply left, or was lost
	done     chan struct{} // closed at that time
}

// end ends the message, once, with why there is no reply; nil: its reply leaves now. Caller holds the node's mutex.
func (m *message) end(err error) {
	m.err, m.answered = err, time.Now()
	close(m.done)
}

// A stream is what arrives over one connection: the node takes one message after another. The node's mutex protects it.
type stream struct {
	made    time.Time  // when the client began to make the connection
	coming  []*message // those on their way to the node, in order
	under   *message   // the message that has been begun; nil: none
	waiting []*message // those that have arrived since
}

// A subscription is a client's subscription to one channel. Its node's mutex protects it.
type subscription struct {
	from    *Host
	seed    sim.Seed // of the link
	channel string
	pushed  int           // how many messages were sent to it
	last    time.Time     // when the last message arrives: none overtakes another, or arrives with it
	under   []string      // messages on their way, in order
	inbox   []string      // messages that have arrived
	news    chan struct{} // gets a value when there is something in inbox, or broken is set
	broken  bool
}

func (s *subscription) signal() {
	select {
	case s.news <- struct{}{}:
	default:
	}
}
