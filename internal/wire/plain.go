package wire

import (
	"cmp"
	"errors"
)

// A PlainAnswer is a node's answer to an acquire by plain commands (Plain). Such an acquire costs the node about half
// of what the script costs, and has the same result where nothing is in the way. It serves one key, held exclusively,
// in a set whose names are no paths: the fence of a folder would have to be larger than those of the locks below it.
// These commands go out in one write, in this order, and other clients' commands may come between any two of them:
//
//	SET key token NX PX ttl
//	ZADD redlock:fence GT CH number bucket
//	GETRANGE key 0 2047
//	EXISTS key:queue
//
// After the last acquire of the write follow three commands for all of them, the trailer:
//
//	MGET redlock:marker
//	TIME
//	SCRIPT EXISTS hash
//
// The answer is a vote if all of the following holds:
//
//   - ZADD said 1: the number is larger than that of every earlier lock of the bucket, and is stored. A smaller number
//     would have to be raised, and only a script can prove that no other lock has been acquired in between.
//   - The key has the token when the number has been stored: SET found it free, and no other client has had the lock
//     since. SET's own answer says only whether there is something to release.
//   - There is no queue: a lock that is free may be reserved for its first waiter.
//   - The marker is the one that the client knew when the request left. It is read after SET and ZADD: a node that
//     loses its data before that loses its marker, too.
//   - The number is not behind the node's own time by more than Clamp; nor is that of a grant by the script. So a node
//     that has lost its table of counters, and has a vote again, gives no number that it may have given before: see
//     fence.go. What the client does not know of the clocks, and how long the answer took, need no bounds.
//   - The time is no later than the deadline. The node cannot refuse what is late, as the script does, but the answer
//     is no vote, and the client at once tells the node to drop the key: the request may be late because the node's
//     clock is ahead, and a key that the node sets then would stay for as much longer once the clock is right again.
//   - The time, which is read after SET, agrees with what the client knows about the node's clock: a clock that was set
//     may have dropped another client's key just before SET. The lane judges that.
//   - The server knows the script that has the process's run_id in its text: so it is the process that the marker
//     names, and not another one behind the same connection, which may have an older copy of data and marker.
//
// Key and number are then as the script would have left them. The attempt is won by a quorum of such votes, and its
// fence is the number. The client does not raise it, and does not send the commands again after a SCRIPT LOAD. If the
// attempt is not won, the client releases it at every node, and the next attempt has a token of its own.
type PlainAnswer struct {
	Set      bool   // SET said OK; false: the key was there
	Refused  error  // the error that the server sent to SET
	Advanced int64  // the reply of ZADD
	Holder   string // the reply of GETRANGE; "": there is no key
	Queues   int64  // the reply of EXISTS
	Err      error  // the first error that the server sent to one of these three
	*Trailer        // the same for all acquires of a write
}

// A Trailer has the answers to the commands that end a write.
type Trailer struct {
	Marker string
	Time   int64 // in microseconds
	Known  int64 // the reply of SCRIPT EXISTS; 1: the process is the one that the marker names
	Failed error // the first error that the server sent to one of these
}

// ErrNoScripts makes an acquire by plain commands void: the server does not have the scripts that this client loaded.
var ErrNoScripts = errors.New("it does not know the scripts that were loaded")

// ErrOvertaken makes an acquire by plain commands void: a later number is stored.
var ErrOvertaken = errors.New("its number is not larger than that of an earlier lock")

// ErrLateKey makes an acquire by plain commands void: the node set the key after the deadline.
var ErrLateKey = errors.New("it set the key when the time was up, or its clock is ahead")

// Read judges the answer to an acquire of this token, with number as the proposed fence. Its Status is Granted; Held; that
// of the error which the server sent to SET; or else Void: no vote, and the caller must release the key, which may be set.
// It is Void, among others, if the node's time is past latest, the deadline in microseconds of the node's clock, or if the
// node's marker is not mark, the one that the client knows (it shows that no data was lost). Mark "": any.
func (p *PlainAnswer) Read(token string, number, latest int64, mark string) Reply {
	void := func(why error) Reply { return Reply{Status: Void, Time: p.Time, Mark: p.Marker, Err: why} }
	switch {
	case p.Refused != nil:
		return Reply{Status: Classify(p.Refused), Err: p.Refused}
	case !p.Set && p.Holder != token:
		return Reply{Status: Held, Holder: p.Holder, Time: p.Time}
	case p.Err != nil || p.Failed != nil:
		return void(cmp.Or(p.Err, p.Failed))
	case p.Time <= 0: // perhaps a proxy: neither the deadline nor the clock can be judged
		return void(errors.New("it has not said what time it is"))
	case mark != "" && p.Marker != mark:
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
