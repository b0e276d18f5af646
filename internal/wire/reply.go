package wire

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/facts"
)

// A Reply is a node's answer to a step, or the reason why there is none.
type Reply struct {
	Status  Status
	Holder  string        // Held, Stolen, inspect: the holder's token; Reserved: the earlier waiter's name
	TTL     time.Duration // Held, Stolen: how long the holder's token still lives; Reserved: the rest of the waiter's lease
	Rest    time.Duration // Quarantined: until the node votes again
	Fence   int64         // acquire: the fence of the grant; inspect: that of the last grant
	Time    int64         // the node's clock, in microseconds; 0: not known
	Mark    string        // the node's marker, if the reply has it
	Slot    int64         // Held: another slot, which is free; NoSlot: all are held; 0: the lock has no slots, or the key is held as a whole
	Queue   []QueueEntry  // inspect: the waiters
	NoVote  bool          // release: the node may not vote now
	Holders []Holder      // inspect: the holders in shared modes
	Err     error         // what the server sent, why the connection failed, or why this is no vote; nil: none of these
}

// A Holder is a token that holds a key in a mode in which several may hold it at once.
type Holder struct {
	Token string
	Mode  Mode
	TTL   time.Duration
}

// NoSlot in Reply.Slot means that no slot of the semaphore is free.
const NoSlot = -1

// AsProposed in Reply.Fence means that the grant took the proposed fence, which the reply does not repeat.
const AsProposed = -1

// Parse makes a Reply of value, a script's reply to this step (int64, string or []any), or of err, if that is not nil.
func Parse(step Op, value any, err error) Reply {
	if err != nil {
		return Reply{Status: Classify(err), Err: err}
	}
	if step == Choose || step == Merge {
		return Reply{Status: Granted} // see lane.Request.Said
	}
	switch v := value.(type) {
	case int64:
		switch {
		case step == Acquire:
			return Reply{Status: Granted, Fence: AsProposed, Time: v}
		case v == 0:
			return Reply{Status: Expired}
		case step == Extend:
			return Reply{Status: Granted, Time: v}
		}
		return Reply{Status: Granted}
	case []any:
		if r, ok := parseList(step, v); ok {
			return r
		}
	}
	return Reply{Status: Failed, Err: Unexpected(value)}
}

// Unexpected returns the error for a reply that no step has. A node may say anything: the error has only its beginning.
func Unexpected(value any) error { return fmt.Errorf("unexpected reply %.100s", fmt.Sprint(value)) }

// parseList makes a Reply of v, a list that a script replied to this step; ok is false if no script does.
func parseList(step Op, v []any) (r Reply, ok bool) {
	ok = true
	number := func(i int) int64 {
		n, is := v[i].(int64)
		ok = ok && is
		return n
	}
	word := func(i int) string {
		s, is := v[i].(string)
		ok = ok && is
		return s
	}
	switch {
	case step == Inspect && len(v) == 7:
		r = Reply{Status: Granted, Holder: word(0), TTL: Milliseconds(number(1)), Mark: word(3), Time: number(4)}
		if v[1] == int64(-1) { // a key without a TTL is no lock, whatever its value is
			return Reply{Status: Foreign, Time: r.Time, Err: ErrNoTTL}, ok
		}
		r.Fence, _ = strconv.ParseInt(word(2), 10, 64) // none: 0
		return r, r.parseWaiting(v[5]) && r.parseHolders(v[6]) && ok
	case step == Acquire && len(v) == 2:
		if mark, is := v[0].(string); is {
			return Reply{Status: Quarantined, Mark: mark, Time: number(1), Err: ErrForgot}, ok
		}
		if mark, is := v[1].(string); is {
			return Reply{Status: Late, Mark: mark, Time: number(0), Err: ErrLate}, ok
		}
		r = Reply{Status: Granted, Fence: number(0), Time: number(1)}
		if r.Fence < 0 || r.Fence >= MaxFence {
			r.Status, r.Err = Failed, fmt.Errorf("the lock's counter is at %d, and can only be relied on below %d", r.Fence, int64(MaxFence))
		}
		return r, ok
	case step == Acquire && len(v) == 4:
		return Reply{Status: Reserved, Holder: word(1), TTL: max(0, Milliseconds(number(0))), Time: number(2)}, ok
	case step == Acquire && len(v) == 5:
		r = Reply{Status: Held, Holder: word(1), TTL: Milliseconds(number(0)), Time: number(2), Slot: cmp.Or(number(4), NoSlot)}
	case step == Acquire && len(v) == 3:
		r = Reply{Status: Held, Holder: word(1), TTL: Milliseconds(number(0)), Time: number(2)}
	case step != Acquire && len(v) == 2:
		r = Reply{Status: Stolen, Holder: word(1), TTL: Milliseconds(number(0))}
	default:
		return r, false
	}
	if r.TTL < 0 { // -1: the key is no lock, for a lock always has a TTL
		return Reply{Status: Foreign, Time: r.Time, Err: ErrNoTTL}, ok
	}
	return r, ok
}

// parseWaiting adds to r.Queue the waiters in list: the members of a queue's sorted set, each followed by its score, the
// ticket. It skips what ParseQueueEntry cannot read, since any program may write into the set. is: list is a list.
func (r *Reply) parseWaiting(list any) (is bool) {
	members, is := list.([]any)
	for i := 0; i+1 < len(members); i += 2 {
		member, _ := members[i].(string)
		score, _ := members[i+1].(string)
		if e, well := ParseQueueEntry(member, score); well {
			r.Queue = append(r.Queue, e)
		}
	}
	return is
}

// parseHolders adds to r.Holders the tokens in list: members of a key's sorted set, each with its score behind it. It
// skips those whose time is over at r.Time. is is false if list is no list.
func (r *Reply) parseHolders(list any) (is bool) {
	members, is := list.([]any)
	for i := 0; i+1 < len(members); i += 2 {
		token, _ := members[i].(string)
		score, _ := members[i+1].(string)
		mode, until := ParseScore(score)
		if rest := until - r.Time/1000; mode != 0 && rest >= 0 {
			r.Holders = append(r.Holders, Holder{token, mode, Milliseconds(rest)})
		}
	}
	return is
}

// Milliseconds makes a Duration of a TTL as Redis gives it, in milliseconds: -1 ms if n is negative (no TTL, or no
// key), and at most a century, since a key may live for longer than a Duration can express.
func Milliseconds(n int64) time.Duration {
	return time.Duration(min(max(n, -1), 100*365*24*3600*1000)) * time.Millisecond
}

var (
	// ErrForgot means that the node has another marker (process, and since when it has its data) than the client knows.
	ErrForgot = errors.New("it has lost its data, or is another server now")

	// ErrMoved means that, after an extension, the marker names another description of the set than the client's.
	ErrMoved = errors.New("it has lost its data, or its set has been changed")

	// ErrLate means that the node executed the request after its deadline, and so refused it.
	ErrLate  = errors.New("it got the request when its time was up")
	ErrNoTTL = errors.New("the key has no TTL, so it is no lock; delete it if nobody needs it")
)

// An UnfitError says why a server must not vote. It wraps nothing, since go-redis unwraps the errors of its OnConnect.
type UnfitError string

func (e UnfitError) Error() string { return "must not vote: " + string(e) }

// A sent error came from a server: go-redis marks its own by this method, as redis.Error says.
type sent interface {
	error
	RedisError()
}

// IsReply reports whether err is, or wraps, an error that the server sent: the connection is intact. False for nil, too.
func IsReply(err error) bool {
	var reply sent
	return errors.As(err, &reply)
}

// Classify returns the Status of err (not nil), an error of the connection, or one that the server sent.
func Classify(err error) Status {
	var said sent
	var timeout net.Error
	var unfit UnfitError
	switch {
	case errors.As(err, &unfit):
		return Unfit
	case errors.As(err, &said):
		return refusal(said.Error())
	case errors.As(err, &timeout) && timeout.Timeout():
		return Timeout
	}
	return Unreachable
}

// Forbids reports whether err is a refusal by the server that trying again does not change: this user may not do it, or
// the server cannot. False for an error of the connection, and for a server that is busy, full, or takes no writes now.
func Forbids(err error) bool {
	if !IsReply(err) {
		return false
	}
	switch Classify(err) {
	case Loading, ReadOnly, OutOfMemory, Busy:
		return false
	}
	return true
}

// refusal returns the Status of an error that the server sent with this text.
func refusal(text string) Status {
	switch facts.Code(text) {
	case "LOADING", "MASTERDOWN":
		return Loading
	case "READONLY", "MISCONF", "NOREPLICAS":
		return ReadOnly
	case "OOM":
		return OutOfMemory
	case "NOAUTH", "WRONGPASS", "NOPERM", "DENIED":
		return Denied
	case "BUSY":
		return Busy
	case "WRONGTYPE":
		return Foreign
	}
	switch {
	case facts.Missing(text) != "":
		return Unfit
	case strings.HasPrefix(text, "ERR max number of clients reached"):
		return Busy
	case strings.Contains(text, "unauthenticated"): // some proxies say so
		return Denied
	}
	return Failed
}

// MeansAbsent reports whether this answer to step (acquire, raise or extend) says that the token is not at the node. False:
// it may be there. That is so for each answer that was lost; for each answer to a raise, which is refused also where a
// counter is larger than the fence; and for each error to an extend, except that the key is no lock (Foreign).
//
// It is so, too, for an error that a command within a script raised, since the script may have written before: for example,
// a user that may not run that command. Other errors come before the first write, if at all. A server that loads its data,
// or runs another script, runs none. A replica without its master refuses the first read. A server that takes no writes
// refuses the first write, and so does a full one; a script that has written may go on.
//
// An acquire by plain commands (PlainAnswer) that has set the key is Granted or Void, whatever its other commands said.
func (r *Reply) MeansAbsent(step Op) bool {
	switch r.Status {
	case Held, Reserved, Stolen, Expired, Late:
		return step != Raise
	case Foreign:
		return step != Raise && !r.Raised()
	case Denied:
		return step == Acquire && !r.Raised()
	case Loading, Busy, ReadOnly, OutOfMemory:
		return step == Acquire
	}
	return false
}

// Raised reports whether r.Err comes from a command within a script: its text then has the word script
// (TestWhatScriptsRaise).
func (r *Reply) Raised() bool {
	return r.Err != nil && strings.Contains(r.Err.Error(), "script")
}
