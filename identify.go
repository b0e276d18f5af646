package redlock

import (
	"context"
	"errors"
	"time"

	"github.com/quorumlock/redlock/internal/facts"
	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/redisnode"
	"github.com/quorumlock/redlock/internal/wire"
)

// identify asks what answers at an address: the run_id of its process. It makes a connection as to a new member, and
// leaves nothing there. "?" is that of a server that refuses the program: it is not the one that does not.
func (o origin) identify(ctx context.Context, address string, patience time.Duration) (string, error) {
	at := o.at(address)
	id := ""
	server := redisnode.New(at.options, patience, patience, func(about facts.Facts) error {
		id = about["run_id"]
		return errSeen
	}, func() {}, passing{})
	defer server.Interrupt()
	switch err := server.Connect(ctx); {
	case id != "":
		return id, nil
	case wire.Forbids(err) || refusesUs(err):
		return "?", nil
	default:
		return "", err
	}
}

// errSeen ends a connection that was made to see what answers.
var errSeen = errors.New("it was seen")

// refusesUs reports whether a server does not let this user in.
func refusesUs(err error) bool {
	if !wire.IsReply(err) {
		return false
	}
	code := facts.Code(err.Error())
	return code == "NOAUTH" || code == "WRONGPASS"
}

// passing is the session of a connection that only looks.
type passing struct{}

var _ lane.Session = passing{}

func (passing) Now() time.Time              { return time.Now() }
func (passing) Hello() wire.Hello           { return wire.Hello{} }
func (passing) Joined(wire.Mark, time.Time) {}
