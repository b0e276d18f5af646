package history

import (
	"fmt"
	"strings"
	"time"
)

// A FaultKind is a kind of fault.
type FaultKind string

// What can happen to a node.
const (
	Kill         FaultKind = "kill"          // as by SIGKILL; restarted with its data when the fault is over
	KillEmpty    FaultKind = "kill empty"    // the same, but restarted without its data
	Hang         FaultKind = "hang"          // as by SIGSTOP: accepts requests, and carries them out when the fault is over
	Slow         FaultKind = "slow"          // every round trip takes By more
	Jitter       FaultKind = "jitter"        // every message takes up to By more, each another delay
	Cut          FaultKind = "cut"           // nothing passes; what was sent arrives when the fault is over
	CutRequests  FaultKind = "cut requests"  // the same, but replies pass
	CutReplies   FaultKind = "cut replies"   // the same, but requests pass
	Part         FaultKind = "part"          // nothing passes, and connections are reset when the fault is over
	Reset        FaultKind = "reset"         // all connections break, at once
	LoseReplies  FaultKind = "lose replies"  // the next Times replies are lost, with their connections; the requests were carried out
	TearReplies  FaultKind = "tear replies"  // the same, but the first half of a pipeline's replies arrives
	Repeat       FaultKind = "repeat"        // the next Times requests are carried out twice, the second time at once
	RepeatLate   FaultKind = "repeat late"   // the same, but the second time up to By later
	Flush        FaultKind = "flush"         // FLUSHALL
	Evict        FaultKind = "evict"         // drops Times keys, as with maxmemory and a policy that evicts
	Full         FaultKind = "full"          // over its maxmemory: refuses to write
	ReadOnly     FaultKind = "read-only"     // a replica, or one that cannot save
	Loading      FaultKind = "loading"       // reads its data from disk
	Locked       FaultKind = "locked"        // asks for a password
	Crowded      FaultKind = "crowded"       // has too many clients
	FlushScripts FaultKind = "flush scripts" // SCRIPT FLUSH
	Busy         FaultKind = "busy"          // runs another client's long script
	Foreign      FaultKind = "foreign"       // keys of another type are where locks should be
	Values       FaultKind = "values"        // other programs have values where locks and their queues should be: megabytes of text, sorted sets, hashes
	Forget       FaultKind = "forget"        // the network forgets all connections that there are, and tells neither side: what is sent over them is lost
	Step         FaultKind = "step"          // its clock is set By forward, or back
	Mute         FaultKind = "mute"          // what it publishes reaches no subscription
	Deafen       FaultKind = "deafen"        // all subscriptions break, at once
	Churn        FaultKind = "churn"         // SCRIPT FLUSH, every By
	Clock        FaultKind = "clock"         // its clock is By ahead, or behind, and is set right when the fault is over
	Still        FaultKind = "still"         // the computer runs none of the servers, while clients go on
	Silent       FaultKind = "silent"        // in a record of locks: it does not answer, for whatever reason
	Mislead      FaultKind = "mislead"       // something else is written in the place of the description of its set: which of many, says Times; it is made to forget that when the fault is over
	Restore      FaultKind = "restore"       // dies, and is restored from a snapshot: of another set of the same members, or of this one at its beginning, says Times
	Copy         FaultKind = "copy"          // dies, and comes up with all data of another node: which, says Times; it is made to forget the description of its set when the fault is over
	Remake       FaultKind = "remake"        // an operator restores the set, if most of its members have lost it: all members at once, whatever Node says
	CutFile      FaultKind = "cut file"      // dies, and its append-only file is cut at a random byte before it is restarted: Times draws where
	FlipFile     FaultKind = "flip file"     // the same, but some bits of the file are others: an operator mends a file, or removes it, that the server refuses
	OldFile      FaultKind = "old file"      // the same, but the file is a copy that was made By earlier
	OtherFile    FaultKind = "other file"    // dies, and is restarted with a copy of another node's files: Times draws which; it is made to forget its set when the fault is over
	PowerCut     FaultKind = "power cut"     // dies, and what it wrote in the last By is lost; all nodes do so at once
	DiskFull     FaultKind = "disk full"     // its append-only file cannot grow: a request may be carried out and answered that is lost with the process
	Slew         FaultKind = "slew"          // its clock gains By in each second, or loses it
	Boot         FaultKind = "boot"          // starts without its data, and with a clock that is By wrong until the fault is over
)

// What can happen to a client.
const (
	Pause   FaultKind = "pause"   // its process is stopped, and goes on when the fault is over
	Suspend FaultKind = "suspend" // its machine is suspended: timers stand still, too
	Crash   FaultKind = "crash"   // its process dies; a new one takes its place when the fault is over
	Skew    FaultKind = "skew"    // its clock is set By forward
)

// OnClient reports whether a fault of this kind is a client's; all others are nodes'.
func (t FaultKind) OnClient() bool { return t == Pause || t == Suspend || t == Crash || t == Skew }

// A Fault is one fault at one node or client, for some time. It is a value: it is written to
// histories, printed, compared, and collected in slices.
type Fault struct {
	At     time.Duration `json:"at"`      // since the start of the run
	Kind   FaultKind     `json:"trouble"` // its kind
	Node   int           `json:"node"`    // where, from 0; for a fault of a client: Client
	Client int           `json:"client,omitempty"`
	For    time.Duration `json:"for,omitempty"` // how long it lasts; 0: it is over at once, or ends by itself
	By     time.Duration `json:"by,omitempty"`
	Times  int           `json:"times,omitempty"`
}

func (f Fault) String() string {
	var s strings.Builder
	if f.Kind.OnClient() {
		fmt.Fprintf(&s, "%v client %d: %s", f.At, f.Client, f.Kind)
	} else {
		fmt.Fprintf(&s, "%v node %d: %s", f.At, f.Node, f.Kind)
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
