package chaos

import (
	"fmt"
	"strings"
	"time"
)

// A Trouble is a kind of fault.
type Trouble string

// What can happen to a node.
const (
	Kill         Trouble = "kill"          // as by SIGKILL; restarted with its data when it is over
	KillEmpty    Trouble = "kill empty"    // the same, but restarted without its data
	Hang         Trouble = "hang"          // as by SIGSTOP: takes requests, and carries them out when it is over
	Slow         Trouble = "slow"          // every round trip takes By more
	Jitter       Trouble = "jitter"        // every message takes up to By more, each another time
	Cut          Trouble = "cut"           // nothing passes; what was sent arrives when it is over
	CutRequests  Trouble = "cut requests"  // the same, but replies pass
	CutReplies   Trouble = "cut replies"   // the same, but requests pass
	Part         Trouble = "part"          // nothing passes, and connections are reset when it is over
	Reset        Trouble = "reset"         // all connections break, at once
	LoseReplies  Trouble = "lose replies"  // the next Times replies are lost, with their connections; the requests were carried out
	TearReplies  Trouble = "tear replies"  // the same, but the first half of a pipeline's replies arrives
	Repeat       Trouble = "repeat"        // the next Times requests are carried out twice, the second time at once
	RepeatLate   Trouble = "repeat late"   // the same, but the second time up to By later
	Flush        Trouble = "flush"         // FLUSHALL
	Evict        Trouble = "evict"         // drops Times keys, as with maxmemory and a policy that evicts
	Full         Trouble = "full"          // over its maxmemory: refuses to write
	ReadOnly     Trouble = "read-only"     // a replica, or one that cannot save
	Loading      Trouble = "loading"       // reads its data from disk
	Locked       Trouble = "locked"        // asks for a password
	Crowded      Trouble = "crowded"       // has too many clients
	FlushScripts Trouble = "flush scripts" // SCRIPT FLUSH
	Busy         Trouble = "busy"          // runs somebody's long script
	Foreign      Trouble = "foreign"       // keys of another type are where locks should be
	Step         Trouble = "step"          // its clock is set By forward, or back
	Mute         Trouble = "mute"          // what it publishes reaches nobody
	Deafen       Trouble = "deafen"        // all subscriptions break, at once
	Churn        Trouble = "churn"         // SCRIPT FLUSH, every By
	Clock        Trouble = "clock"         // its clock is By ahead, or behind, and is set right when it is over
	Forge        Trouble = "forge"         // Times times, every By, somebody who may publish there tells those who listen what the node would, as far as that can be guessed
	Still        Trouble = "still"         // the computer runs none of the servers, and clients go on
	Replay       Trouble = "replay"        // the same, but with what the node has said before
	Boot         Trouble = "boot"          // comes up without its data, and with a clock that is By wrong until it is over
)

// What can happen to a client.
const (
	Pause   Trouble = "pause"   // its process is stopped, and goes on when it is over
	Suspend Trouble = "suspend" // its machine is: timers stand still, too
	Crash   Trouble = "crash"   // its process dies; a new one takes its place when it is over
	Skew    Trouble = "skew"    // its clock is set By forward
)

// onClient are the troubles that clients have; all others are nodes'.
func (t Trouble) onClient() bool { return t == Pause || t == Suspend || t == Crash || t == Skew }

// A Fault is one thing that goes wrong, at one place, for some time. It is a
// value: written to a history, printed, compared, and put together with others
// in a slice.
type Fault struct {
	At      time.Duration `json:"at"`      // since the start of the run
	Trouble Trouble       `json:"trouble"` // what
	Node    int           `json:"node"`    // where, from 0; for a trouble of a client's: Client
	Client  int           `json:"client,omitempty"`
	For     time.Duration `json:"for,omitempty"` // until it is over; 0: it is over at once, or by itself
	By      time.Duration `json:"by,omitempty"`
	Times   int           `json:"times,omitempty"`
}

func (f Fault) String() string {
	var s strings.Builder
	if f.Trouble.onClient() {
		fmt.Fprintf(&s, "%v client %d: %s", f.At, f.Client, f.Trouble)
	} else {
		fmt.Fprintf(&s, "%v node %d: %s", f.At, f.Node, f.Trouble)
	}
	if f.By != 0 {
		fmt.Fprintf(&s, " by %v", f.By)
	}
	if f.Times != 0 {
		fmt.Fprintf(&s, " %d times", f.Times)
	}
	if f.For != 0 {
		fmt.Fprintf(&s, " for %v", f.For)
	}
	return s.String()
}
