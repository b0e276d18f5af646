package redlock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-multierror"
	"github.com/quorumlock/redlock/internal/facts"
	"github.com/quorumlock/redlock/internal/printable"
	"github.com/quorumlock/redlock/internal/set"
	"github.com/quorumlock/redlock/internal/vote"
	"github.com/quorumlock/redlock/internal/waitlist"
	"github.com/quorumlock/redlock/internal/wire"
)

// The errors differ in what the caller does next. Test with [errors.Is]; [errors.As] gives [QuorumError] and [NodeError].
var (
	// ErrHeld says that others have the lock, or are trying for it at this moment: come back later.
	ErrHeld = errors.New("held by another")

	// ErrNoQuorum says that too few nodes gave a usable answer in time: look at the nodes, which the error names.
	ErrNoQuorum = errors.New("no quorum")

	// ErrLost says that the lock has ended, so another client may have it: stop now. The text says why: renewals failed
	// (how many, for how long, and what each node said to the last one, also as a [QuorumError]), this process stood
	// still, nobody extended the lock, or the nodes do not have it any more.
	ErrLost = errors.New("lock lost")

	// ErrClosed says that the Locker has been closed.
	ErrClosed = errors.New("redlock: closed")
)

// errReleased is the cause with which a lock's contexts end when its holder releases it. It is not a loss, so it is not
// ErrLost. errDetached is the cause when the holder has detached the lock for another process.
var errReleased = errors.New("redlock: lock released")

var errDetached = errors.New("redlock: lock detached")

// errStopping is the cause with which a lock's contexts end when Shutdown is called. The lock is still held.
var errStopping = fmt.Errorf("%w: Shutdown was called: the lock is held until its work has ended", ErrClosed)

// The reasons for which a lock ends before its holder releases it. All are ErrLost. Lock.lost adds details to the first two.
var (
	errExpired = fmt.Errorf("redlock: %w: validity ended", ErrLost)
	errMaxHold = fmt.Errorf("redlock: %w: held for as long as MaxHold allows", ErrLost)
	errShut    = fmt.Errorf("%w: %w", ErrClosed, ErrLost)
)

// A loss says why a lock has ended whose validity is over. kind is errExpired or errMaxHold.
type loss struct {
	name    string
	kind    error
	rounds  int32         // extensions that were begun
	failed  int           // renewals in a row that failed before the end
	since   time.Duration // from the first of these renewals to the end
	stalled time.Duration // how long this process stood still when the validity ended
}

func (e *loss) Error() string {
	return fmt.Sprintf("redlock: %q: %v: %s", e.name, ErrLost, e.reason())
}

func (e *loss) Unwrap() error { return e.kind }

// reason is why the lock has ended, without the lock's name.
func (e *loss) reason() string {
	why := "validity ended"
	switch {
	case e.kind == errMaxHold:
		return "held for as long as MaxHold allows"
	case e.failed == 1:
		why += fmt.Sprintf(" %s after a renewal failed", printable.Duration(e.since))
	case e.failed > 1:
		why += fmt.Sprintf(" after %d renewals failed in %s", e.failed, printable.Duration(e.since))
	}
	switch {
	case e.stalled > 0:
		why += fmt.Sprintf(", while this process stood still for %s (or its clock was set by that)", printable.Duration(e.stalled))
	case e.rounds == 0:
		why += ", and it was not extended"
	}
	return why
}

// An Outcome is what one node did with a request.
type Outcome uint8

const (
	OutcomeGranted     = Outcome(wire.Granted)
	OutcomeHeld        = Outcome(wire.Held)        // another token is there, for a while
	OutcomeReserved    = Outcome(wire.Reserved)    // free, but reserved for a waiter that came earlier
	OutcomeGone        = Outcome(wire.Expired)     // this token is not there any more
	OutcomeStolen      = Outcome(wire.Stolen)      // another token is where this one was
	OutcomeRefilled    = Outcome(wire.Refilled)    // this token is there again, after the node had lost it: no vote for the time in between
	OutcomeNotALock    = Outcome(wire.Foreign)     // a key that is no lock is in the way: of another type, or without a TTL
	OutcomeTimeout     = Outcome(wire.Timeout)     // no answer in time
	OutcomeUnreachable = Outcome(wire.Unreachable) // no connection, or it broke
	OutcomeLoading     = Outcome(wire.Loading)     // the server is reading its data from disk
	OutcomeReadOnly    = Outcome(wire.ReadOnly)    // the server takes no writes (a replica, or it cannot save)
	OutcomeOutOfMemory = Outcome(wire.OutOfMemory) // the server is over its maxmemory
	OutcomeDenied      = Outcome(wire.Denied)      // credentials or ACL
	OutcomeBusy        = Outcome(wire.Busy)        // the server runs a long script, or says that it has too many clients
	OutcomeQuarantined = Outcome(wire.Quarantined) // granted, but no vote: the node may have forgotten what it granted to another client
	OutcomeLate        = Outcome(wire.Late)        // the request reached the node after its deadline, and the node did nothing
	OutcomeIneligible  = Outcome(wire.Unfit)       // the node must not vote: a replica, a cluster node, evicting keys, the same server twice, or one that is not supported
	OutcomeFailed      = Outcome(wire.Failed)      // any other error of the server
	OutcomeVoid        = Outcome(wire.Void)        // the node was asked by plain commands, and its answer is no vote; an attempt by a script follows
)

func (o Outcome) String() string { return wire.Status(o).String() }

// A NodeError says what one node did that was not a grant.
type NodeError struct {
	Node    string // the node's address, as the client was given it; FailoverClient#0: node 0 that New was given, a failover client
	Outcome Outcome
	Holder  string        // Held, Stolen: the token that is there; Reserved: the name of the waiter
	TTL     time.Duration // how long until the node could grant, if what is in the way (a lock, a waiter's place, its quarantine) is not renewed; 0: it did not say
	Elapsed time.Duration // from the start of the round to the answer, or to when the client stopped waiting
	Err     error         // the client's or the server's own error, nil if there was none

	slot int64 // Held: a free slot, other than the one asked for; wire.NoSlot: none is free; 0: not known
}

// nodeError makes the error of a node's reply that is not a grant. elapsed is the time from the start of the round.
func nodeError(node string, a *wire.Reply, elapsed time.Duration) NodeError {
	e := NodeError{Node: node, Outcome: Outcome(a.Status), Holder: a.Holder, TTL: a.TTL, Elapsed: elapsed, Err: a.Err, slot: a.Slot}
	if a.Status == wire.Quarantined { // who holds the lock there says nothing
		e.Holder, e.TTL = "", a.Rest
	}
	return e
}

func (e *NodeError) Error() string {
	var s strings.Builder
	s.WriteString(e.Node)
	s.WriteString(": ")
	s.WriteString(e.Outcome.String())
	switch {
	case e.Outcome == OutcomeQuarantined && e.TTL > 0:
		fmt.Fprintf(&s, " for %s: %v", printable.Duration(e.TTL), e.Err)
	case e.Outcome == OutcomeReserved:
		fmt.Fprintf(&s, " for %s, who has waited longer", printable.Text(e.Holder))
	case e.Holder != "":
		fmt.Fprintf(&s, " by %s", printable.Holder(Identify(e.Holder).Owner, wire.Secret(e.Holder)))
		if e.TTL > 0 {
			fmt.Fprintf(&s, " for %s", printable.Duration(e.TTL))
		}
		switch {
		case e.slot == wire.NoSlot:
			s.WriteString(", and no other slot is free")
		case e.slot > 0:
			fmt.Fprintf(&s, ", and slot %d is free", e.slot)
		}
	case e.Err != nil:
		s.WriteString(": ")
		s.WriteString(e.reason())
	case e.Outcome == OutcomeTimeout:
		fmt.Fprintf(&s, " after %s", printable.Duration(e.Elapsed))
	}
	return s.String()
}

// failoverAddr is the address that go-redis shows for a failover client, which asks its sentinels for the real one.
// Such nodes are named by their position: FailoverClient#0.
const failoverAddr = wire.AnyAddress

// reason is the text of Err, the server's or client's own error, without the node's address, which Node has already unless
// it is a failover client's; "" if Err is nil.
func (e *NodeError) reason() string {
	if e.Err == nil {
		return ""
	}
	if t := facts.TroubleOf(e.Err); t != nil {
		return printable.Text(t.What)
	}
	if op := (*net.OpError)(nil); errors.As(e.Err, &op) {
		if op.Addr != nil && strings.HasPrefix(e.Node, failoverAddr) {
			return fmt.Sprintf("%s %v: %v", op.Op, op.Addr, op.Err)
		}
		return fmt.Sprintf("%s: %v", op.Op, op.Err)
	}
	return printable.Text(e.Err.Error())
}

// Unwrap returns Err. It returns nil if Err is a deadline or a cancellation of the library's own: an error is
// context.DeadlineExceeded or context.Canceled only if the caller's context has ended.
func (e *NodeError) Unwrap() error {
	if errors.Is(e.Err, context.DeadlineExceeded) || errors.Is(e.Err, context.Canceled) {
		return nil
	}
	return e.Err
}

// untold reports whether the node had no vote as it did not keep the description of the set (members, settings).
func (e *NodeError) untold() bool {
	_, is := e.Err.(vote.UntoldError)
	return is
}

// votes reports whether the node was untold (had no vote), but has got the description since and has a vote now.
func (e *NodeError) votes() bool {
	untold, is := e.Err.(vote.UntoldError)
	return is && untold.Votes()
}

// outdated reports whether the node was untold (had no vote), and known, the client's description now, is another than then.
func (e *NodeError) outdated(known *wire.Description) bool {
	by, is := e.Err.(vote.UntoldError)
	return is && by.Outdated(known)
}

// outdated reports whether that is so (NodeError.outdated) for any of the nodes.
func (e *QuorumError) outdated(known *wire.Description) bool {
	return slices.ContainsFunc(e.Nodes(), func(n *NodeError) bool { return n.outdated(known) })
}

// A QuorumError says why a round over the nodes failed. It is ErrHeld, ErrNoQuorum or ErrLost to [errors.Is], and also
// the context's error if that is what ended it.
type QuorumError struct {
	Op   string // "acquire", "extend", "release", "break" or "wait-ready"
	Name string // the lock; "" for wait-ready

	N       int // nodes in all
	Need    int // votes that would have been enough
	Granted int // nodes that said yes
	Held    int // nodes that answered, and said no
	Failed  int // nodes that gave no usable answer. Nodes without an answer when the round was decided count nowhere

	Kind  error // ErrHeld, ErrNoQuorum or ErrLost
	Cause error // what ended it, other than the votes: the context's error, for instance; or nil

	token string // the token of the attempt
	nodes multierror.Error
}

// quorumError returns the QuorumError that err is or wraps; nil: it wraps none. To change the result changes err.
func quorumError(err error) *QuorumError {
	if err == nil {
		return nil // and nothing is allocated
	}
	var why *QuorumError
	errors.As(err, &why)
	return why
}

// Error says in one line what happened, to which lock, and what each node did.
func (e *QuorumError) Error() string {
	var s strings.Builder
	votes := fmt.Sprintf("%d votes, %d of %d needed", e.Granted, e.Need, e.N)
	if e.Granted == 1 {
		votes = strings.Replace(votes, "votes", "vote", 1)
	}
	if end, ok := e.Cause.(*loss); ok {
		fmt.Fprintf(&s, "%v; the last one: %s", end, votes)
	} else {
		s.WriteString("redlock: " + e.Op)
		if e.Name != "" {
			fmt.Fprintf(&s, " %q", e.Name)
		}
		fmt.Fprintf(&s, ": %v: ", e.Kind)
		if e.Kind == ErrLost {
			s.WriteString("the nodes do not have it any more: ")
		}
		s.WriteString(votes)
		if e.Cause != nil {
			fmt.Fprintf(&s, ", %v", e.Cause)
		}
	}
	if err := e.nodes.ErrorOrNil(); err != nil {
		fmt.Fprintf(&s, " (%v)", err)
	}
	s.WriteString(e.wayOut())
	return s.String()
}

// wayOut returns the advice at the end of the text, if only quarantines prevent a quorum, or refusals that last; else "".
func (e *QuorumError) wayOut() string {
	votes, fresh, shorten := e.Granted, false, ""
	for _, err := range e.Nodes() {
		if err.Outcome == OutcomeQuarantined {
			if votes++; err.TTL > 10*time.Minute {
				shorten = "; the longest TTL that the set allows makes that so long: redlock members set max-ttl makes it shorter for all programs, and with --locks-over at once: that declares that no longer lock is held"
			}
			fresh = fresh || errors.Is(err.Err, vote.ErrNew)
		}
	}
	switch {
	case e.Cause == errRefused:
		return "; " + strings.Join(todos(e.Nodes()), "; ")
	case e.Name == "" || e.Kind != ErrNoQuorum || e.Granted >= e.Need || votes < e.Need:
		return ""
	case fresh:
		return "; new nodes vote when Options.Quarantine is over: Locker.WaitReady waits for that when they are deployed; in development there is redlock prepare --fresh, in tests package redlocktest (docs/testing.md)" + shorten
	}
	return "; nodes that are new, or came back, vote when Options.Quarantine is over: Locker.WaitReady waits for that when they are deployed" + shorten
}

// todos returns the advice for those of the nodes' errors that waiting does not end (facts.Lasting), each once.
func todos(nodes []*NodeError) (all []string) {
	for _, n := range nodes {
		if todo := facts.Todo(n.Err); facts.Lasting(n.Err) && !slices.Contains(all, todo) {
			all = append(all, todo)
		}
	}
	return all
}

// Unwrap returns Kind, Cause and the per-node errors.
func (e *QuorumError) Unwrap() []error {
	errs := []error{e.Kind}
	if e.Cause != nil {
		errs = append(errs, e.Cause)
	}
	if err := e.nodes.ErrorOrNil(); err != nil {
		errs = append(errs, err)
	}
	return errs
}

// retryUnknown is what RetryAfter returns if too few nodes say when they could grant the lock.
const retryUnknown = time.Second

// RetryAfter is how long to wait until another attempt can succeed: the earliest time at which a quorum of the nodes could
// grant the lock, by what they said, if nothing is renewed. A node that gave no usable answer does not count; where too few
// others are left for a quorum, RetryAfter is a second. The lock may be free earlier, since a holder may release it.
// RetryAfter is 0 if another attempt may succeed at once, and for ErrLost.
func (e *QuorumError) RetryAfter() time.Duration {
	if e.Kind == ErrLost || e.Need <= 0 || e.N < e.Need {
		return 0
	}
	nodes := e.Nodes()
	in := make([]time.Duration, e.N-len(nodes), e.N) // granted, or not asked
	for _, n := range nodes {
		switch n.Outcome {
		case OutcomeHeld, OutcomeReserved, OutcomeQuarantined, OutcomeLate:
			in = append(in, n.TTL)
		}
	}
	if len(in) < e.Need {
		return retryUnknown
	}
	slices.Sort(in)
	return in[e.Need-1]
}

// Nodes lists what each node did that was not a grant. The elements are the error's own: to change one changes the error.
func (e *QuorumError) Nodes() []*NodeError {
	nodes := make([]*NodeError, 0, len(e.nodes.Errors))
	for _, err := range e.nodes.Errors {
		nodes = append(nodes, err.(*NodeError))
	}
	return nodes
}

// refusal converts the error for package waitlist, which decides when a waiter tries again.
func (e *QuorumError) refusal() waitlist.Refusal {
	r := waitlist.Refusal{N: e.N, Need: e.Need, Failed: e.Failed, Held: e.Kind == ErrHeld}
	for _, n := range e.Nodes() {
		r.Nodes = append(r.Nodes, waitlist.NodeRefusal{Node: n.Node, Status: wire.Status(n.Outcome), Holder: n.Holder, TTL: n.TTL, Slot: n.slot})
	}
	return r
}

// note adds n, what one node did, to the error, which keeps the pointer.
func (e *QuorumError) note(n *NodeError) {
	e.nodes.ErrorFormat = oneLine
	e.nodes.Errors = append(e.nodes.Errors, n)
}

func oneLine(errs []error) string {
	parts := make([]string, len(errs))
	for i, err := range errs {
		parts[i] = err.Error()
	}
	return strings.Join(parts, "; ")
}

// ended returns ctx's error, with ctx's cause if that says more; nil: ctx has not ended.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// refusalPatience is for how long nodes must refuse a client before its waiters give up. When credentials are changed,
// the change reaches servers and clients one after another, and a lane (the client's queue and connection for one node)
// connects again once a second at the latest. So a few seconds are enough for a change under way.
const refusalPatience = 5 * time.Second

var errRefused = errors.New("the nodes refuse this client, and waiting does not end that")

// shutOuts has a shutOut for each local queue in which calls wait. The zero value is ready to use.
type shutOuts struct {
	mu sync.Mutex
	of map[string]*shutOut
}

// enter returns the record of which nodes refuse the calls of a local queue (its name). They share it; each must call leave.
func (s *shutOuts) enter(queue string) *shutOut {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.of[queue]
	if o == nil {
		if s.of == nil {
			s.of = make(map[string]*shutOut)
		}
		o = &shutOut{nodes: make(map[string]*refusal)}
		s.of[queue] = o
	}
	o.calls++
	return o
}

func (s *shutOuts) leave(queue string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of[queue].calls--; s.of[queue].calls == 0 {
		delete(s.of, queue)
	}
}

// A shutOut remembers since when each node refuses the calls of one local queue, for a reason that waiting does not end
// (facts.Lasting). These calls want the same names, for which a user may lack a right. The first of them asks the nodes
// for all. A shutOut takes in late answers, too: an attempt ends with the first answers that decide it, and those may
// always come from the same nodes.
type shutOut struct {
	calls int // protected by shutOuts.mu

	mu    sync.Mutex // protects nodes
	nodes map[string]*refusal
}

// A refusal is since when a node has given no answer but refusals, when it gave the last one, and that one's error.
type refusal struct {
	since, last time.Time
	err         error
}

// note records what a node did at now. If err is a refusal that lasts (facts.Lasting), it begins a series of refusals, or
// adds to one whose last was refusalPatience ago at most. An answer that shows that the node serves this client ends the
// series. Other outcomes, a timeout for instance, change nothing.
func (s *shutOut) note(node string, did Outcome, err error, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.nodes[node]
	switch {
	case !facts.Lasting(err):
		switch did {
		case OutcomeGranted, OutcomeHeld, OutcomeReserved, OutcomeQuarantined, OutcomeNotALock, OutcomeVoid:
			delete(s.nodes, node)
		}
		return
	case r == nil, elapsed(r.last, now) > refusalPatience:
		r = &refusal{since: now}
		s.nodes[node] = r
	}
	r.last, r.err = now, err
}

// ends reports whether waiting is of no use: without the nodes of the view that have refused for refusalPatience, no quorum
// is left. Then it changes why, the error of the last attempt, to say so and to name the refusing nodes.
func (s *shutOut) ends(why *QuorumError, view *set.View, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	var refusing []*NodeError
	for _, n := range view.Lanes {
		if r := s.nodes[n.Name]; r != nil && elapsed(r.since, now) >= refusalPatience && elapsed(r.last, now) <= refusalPatience {
			refusing = append(refusing, &NodeError{Node: n.Name, Outcome: Outcome(wire.Classify(r.err)), Err: r.err})
		}
	}
	if len(view.Lanes)-len(refusing) >= view.Quorum {
		return false
	}
	why.Kind, why.Cause = ErrNoQuorum, errRefused
	said := why.Nodes()
	for _, n := range refusing { // the last attempt may have ended without the answers of some
		if !slices.ContainsFunc(said, func(other *NodeError) bool { return other.Node == n.Node }) {
			why.note(n)
			why.Failed++
		}
	}
	return true
}

// An Identity is what a lock's token says of the attempt that acquired it. It is zero for a token of another library,
// or of a version from before this. A client that can write to the nodes can write any identity. So use it to find whom
// to ask; the library uses it only to decide whether a later TryAcquire goes on asking.
type Identity struct {
	// Owner is the Options.Owner of the process. It may hold any bytes: quote it before it reaches a terminal.
	Owner string

	// Since is when the attempt began, by its process's clock, in milliseconds.
	Since time.Time

	// Trace is the id of the trace that the attempt belongs to (redlocktrace.Trace.ID); "": none.
	Trace string

	// Names are those of a lock on several names (Also), in order, as many as fit into the token. More is how many do
	// not.
	Names []string
	More  int
}

// Identify returns what a token says of its attempt: the token of a [Lock], of a [Status], or the Holder of a [NodeError].
// For a token of another library it is zero.
func Identify(token string) Identity {
	who, ok := wire.Identify(token)
	if !ok {
		return Identity{}
	}
	return Identity(who)
}
