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
	sent         time.Time
	abandoned    bool          // the client has given up the connection
	trailer      *wire.Trailer // if there is an acquire of plain commands, or an extension without a script
	subscription *subscription // wants to hear
	epoch        int
	id           sim.Seed
	from         *Host

	err   error
	ended bool          // the reply may leave, or there will be none
	done  chan struct{} // closed then, if somebody waits
}

// end says what became of the message. Under the node's mutex.
func (m *message) end(err error) {
	m.err, m.ended = err, true
	if m.done != nil {
		close(m.done)
	}
}

// wait gives a channel that is closed when the message has ended; nil: it has.
// Under the node's mutex.
func (m *message) wait() <-chan struct{} {
	if m.ended {
		return nil
	}
	m.done = make(chan struct{})
	return m.done
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
