package wire

import (
	"cmp"
	"errors"
)

// A PlainAnswer is what a node says to an acquire of plain commands (Plain). Such an acquire costs the
// node about half of what the script costs, and comes to the same where nothing is in the way. It is
// for one key, held exclusively, in a set whose names are no paths: the number of a folder would have to be
// larger than those of the locks below it. These commands go out in one write, in this order, and other
// clients' commands may come between any two of them:
//
//	SET key token NX PX ttl
//	ZADD redlock:fence GT CH number bucket
//	GETRANGE key 0 2047
//	EXISTS key:queue
//
// After the last acquire of the write come three commands for all of them, the trailer:
//
//	MGET redlock:marker
//	TIME
//	SCRIPT EXISTS hash
//
// The node has a vote if all of the following holds:
//
//   - ZADD said 1: the number is larger than that of every earlier lock of the bucket, and is stored.
//     A smaller number would have to be raised, and only a script can prove that no other lock has
//     been acquired in between.
//   - The key has the token when the number has been stored: SET found it free, and no other client
//     has had the lock since. SET's own answer says only whether there is something to release.
//   - There is no queue: a lock that is free may be reserved for its first waiter.
//   - The marker is the one that was known when the request left. It is read after SET and ZADD: a
//     node that loses its data before that loses its marker, too.
//   - The number is not behind the node's own time by more than Clamp, as that of a grant by the
//     script is not. So a node that has lost its table, and has a vote again, gives no number that it
//     may have given before: see fence.go. What is not known of the clocks, and how long the answer
//     has taken, need no bounds of their own.
//   - The time is no later than the deadline. The node cannot refuse what is late, as the script does,
//     but it has no vote, and is told at once to drop the key: it may be late because its clock is ahead,
//     and a key that it sets then would be there for as long as that once the clock is right again.
//   - The time, which is read after SET, agrees with what is known about the node's clock: a clock
//     that was set may have dropped another client's key just before SET. The lane judges it.
//   - The server knows the script that has the process's run_id in its text: so it is the process
//     that the marker is of, and not another one behind the same connection, which may have an older
//     copy of data and marker.
//
// Key and number are then as the script would have left them. The attempt is won by a quorum of such
// votes, and its fence is the number. It is not raised, and not sent again after a SCRIPT LOAD. If it
// is not won it is released at every node, and the next attempt has a token of its own.
type PlainAnswer struct {
	Set      bool   // SET said OK; otherwise the key was there
	Refused  error  // what the server said to SET instead
	Advanced int64  // ZADD
	Holder   string // GETRANGE; empty: there is no key
	Queues   int64  // EXISTS
	Err      error  // what the server said first to one of these three instead
	*Trailer        // the same for all acquires of a write
}

// A Trailer has the answers to the commands that end a write.
type Trailer struct {
	Marker string
	Time   int64 // in microseconds
	Known  int64 // SCRIPT EXISTS
	Failed error // what the server said first to one of these instead
}

// ErrNoScripts is why an acquire of plain commands is void: the scripts that the client has loaded are
// not there.
var ErrNoScripts = errors.New("it does not know the scripts that were loaded")

// ErrOvertaken is why an acquire of plain commands is void.
var ErrOvertaken = errors.New("its number is not larger than that of an earlier lock")

// ErrLateKey is why an acquire of plain commands is void.
var ErrLateKey = errors.New("it set the key when the time was up, or its clock is ahead")

// Read gives the reply for the token and the number that were sent, the deadline, and a client that
// knows this marker.
func (p *PlainAnswer) Read(token string, number, latest int64, mark string) Reply {
	void := func(why error) Reply { return Reply{Status: Void, Time: p.Time, Mark: p.Marker, Err: why} }
	switch {
	case p.Refused != nil:
		return Reply{Status: Classify(p.Refused), Err: p.Refused}
	case !p.Set && p.Holder != token:
		return Reply{Status: Held, Holder: p.Holder, Time: p.Time}
	case p.Err != nil || p.Failed != nil:
		return void(cmp.Or(p.Err, p.Failed))
	case p.Time <= 0: // a proxy, perhaps: nothing can be said of the deadline, nor of the clock
		return void(errors.New("it has not said what time it is"))
	case mark != "" && p.Marker != mark: // "": the client asks nothing of nodes that lose their data
		return void(ErrForgot)
	case p.Known != 1:
		return void(ErrNoScripts)
	case p.Time > latest:
		return void(ErrLateKey)
	case p.Advanced != 1:
		return void(ErrOvertaken)
	case number < p.Time-Clamp.Microseconds():
		return void(errors.New("its number is far behind the node's clock"))
	case p.Holder != token:
		return void(errors.New("the key was gone when the number had been stored"))
	case p.Queues > 0:
		return void(errors.New("other clients wait for the lock"))
	}
	return Reply{Status: Granted, Fence: number, Time: p.Time, Mark: p.Marker}
}
