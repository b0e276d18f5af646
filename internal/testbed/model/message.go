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
	hello        wire.Hello // connect, join
	mark         wire.Mark  // what the node's marker is, if it is to have one
	calls        []Call
	next         cursor // the next command to carry out
	begun        bool   // some have been
	admitted     bool   // see Node.Before
	sent         time.Time
	abandoned    bool          // the client has given up the connection
	trailer      *wire.Trailer // if there is an acquire of plain commands, or an extension without a script
	subscription *subscription // wants to hear
	epoch        int
	id           sim.Seed
	from         *Host

	stream *stream
	back   time.Duration // how long the reply takes

	err      error
	answered time.Time     // when the reply has left, or it became clear that there will be none
	done     chan struct{} // closed then
}

// end says what became of the message. Under the node's mutex.
func (m *message) end(err error) {
	m.err, m.answered = err, time.Now()
	close(m.done)
}

// A stream is what arrives over a connection: the node carries out one message after another. Its node's mutex guards it.
type stream struct {
	coming  []*message // which are on their way, in order
	under   *message   // has been begun
	waiting []*message // which have arrived since
}

// A subscription is a client's to one channel: its node's mutex guards it.
type subscription struct {
	from    *Host
	seed    sim.Seed // of the link
	channel string
	pushed  int
	last    time.Time // when the last message arrives: none overtakes another, or comes with it
	under   []string  // the messages on their way, in order
	inbox   []string
	news    chan struct{}
	broken  bool
}

func (s *subscription) signal() {
	select {
	case s.news <- struct{}{}:
	default:
	}
}
