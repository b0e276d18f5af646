package model

import (
	"time"

	"github.com/quorumlock/redlock/internal/wire"
)

// A Sight is one thing that a node is asked, when the message reaches it, and the state of the node then.
type Sight struct {
	Asked Asked
	State State
	Age   time.Duration // of the marker, by the node's clock; for the state Marked only
	Epoch int64         // of the description that the node keeps; 0: it keeps none
}

// Asked is what a node is asked: a wire.Op, an op of clients of other libraries, or one of the following.
type Asked uint8

const (
	Connect Asked = Asked(CompareAndExpire) + 1 + iota
	Join
	Subscribe
	NativeExtend  // without a script; see wire.NativeAnswer
	NativeRelease // the same

	Askeds = int(NativeRelease) + 1 // how many there are
)

func (a Asked) String() string {
	if a <= Asked(wire.Set) {
		return wire.Op(a).String()
	}
	return [...]string{"compare and delete", "compare and expire", "connect", "join", "subscribe", "native extend", "native release"}[a-Asked(CompareAndDelete)]
}

// A State is a set of what is true of a node, and of the keys that it is asked about.
type State uint32

const (
	Down State = 1 << iota
	Hung
	RequestsCut
	RepliesCut
	Late      // messages take longer than usual
	Loses     // the next replies get lost, or torn
	Repeats   // the next messages are carried out twice
	ReadOnly  // refuses to write
	Full      // refuses writes that need memory
	Refuses   // refuses everything: it is loading, for example
	Mute      // subscribers get no messages
	Scripted  // has scripts
	Marked    // has a marker
	Remarked  // and has lost data, or was started again, since the client has seen its marker
	Described // keeps a description of a set
	Alias     // which says that it is another node
	Ahead     // its clock is set forward
	Behind    // or back
	Fast      // its clock runs fast
	Held      // a key is held by another token
	Queued    // a key has a queue
	Foreign   // a key is of another type
	Broken    // the token is noted as broken
	Batched   // the message has other calls, too
	Followed  // the next message over the same connection is on its way
)
