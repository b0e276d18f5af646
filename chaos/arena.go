package chaos

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/ways"
)

// An Arena is where a plan is carried out.
type Arena struct {
	Name  string
	About string
	Lag   time.Duration // see Head.Lag
	Exact bool          // see Head.Exact
	Least time.Duration // the shortest TTL that is not over before anything has happened; 0: any
	Most  time.Duration // the longest TTL that there is time for; 0: any
	Room  int           // for so many clients; 0: for any number

	cannot []Trouble
	ready  func() error // says what is missing on this machine; nil: nothing ever is
	run    func(*Plan) (*History, error)
}

// Ready says what is missing on this machine to run plans here, if anything is.
func (a *Arena) Ready() error {
	if a.ready == nil {
		return nil
	}
	return a.ready()
}

// able leaves out the troubles that an arena cannot make.
func (a *Arena) able(troubles []Trouble) []Trouble {
	return slices.DeleteFunc(slices.Clone(troubles), func(t Trouble) bool { return slices.Contains(a.cannot, t) })
}

// ttls leaves out what takes too long, or not long enough.
func (a *Arena) ttls(from []time.Duration) []time.Duration {
	fit := slices.DeleteFunc(slices.Clone(from), func(d time.Duration) bool { return d < a.Least || a.Most > 0 && d > a.Most })
	switch {
	case len(fit) > 0:
		return fit
	case from[0] < a.Least:
		return []time.Duration{a.Least}
	}
	return []time.Duration{a.Most}
}

// A world is an arena at work on one plan: what the clients touch, and what can be
// done to it.
type world interface {
	// enter makes a process for a client. Its name is not used again.
	enter(client int, name string) (process, error)

	// strike has a fault at a node begin or end.
	strike(f Fault, begin bool)

	// left lists what is on the nodes, and weigh how much it is.
	left() []leftover
	weigh() []Weight

	// close ends it, and says what has not ended by itself.
	close() error
}

// A process is where one client lives.
type process interface {
	locker(*redlock.Options) (*redlock.Locker, error)

	// plain gives the nodes to a client that is no redlock.
	plain() []plainNode

	// pass returns when a worker's n-th step may go on: at any point of a program
	// the process may be held up.
	pass(worker, n int)

	// hold has it held up for some time: stopped, or with its machine.
	hold(d time.Duration, machine bool)

	// skew sets its clock forward; real is what an instant of it is by the right
	// time.
	skew(d time.Duration)
	real(t time.Time) time.Time

	// lanes are how many requests its Locker keeps for each node.
	lanes() []int

	// holders looks for a token under a key: how many nodes have it, and how many
	// cannot say.
	holders(key, token string) (has, silent int)

	// crash ends it: no message leaves it or reaches it any more.
	crash()
}

// A plainNode is a node as the Redlock page's own algorithm uses it.
type plainNode interface {
	setNX(ctx context.Context, key, token string, ttl time.Duration) (bool, error)
	compareAndDelete(ctx context.Context, key, token string) error
}

// counts reports whether somebody in a set with others counts at some time of the
// node's, which may have yet to drop him.
func counts(score float64, now time.Time) bool {
	_, until := ways.OfScore(strconv.FormatFloat(score, 'f', 0, 64))
	return until >= now.UnixMilli()
}

// A leftover is a key on a node.
type leftover struct {
	node       int
	key, token string
}
