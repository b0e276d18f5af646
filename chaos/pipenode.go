package chaos

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock/internal/embedded"
	"github.com/quorumlock/redlock/internal/pipes"
	"github.com/quorumlock/redlock/internal/seed"
)

// A pipeNode is a miniredis behind pipes, and knows all troubles of nodes.
type pipeNode struct {
	*pipes.Node
	seed  seed.Seed
	rtt   time.Duration
	drawn int // of latencies; guarded by the path, which asks for one after another

	mu   sync.Mutex // never held while waiting
	ears map[*ear]struct{}
}

// refuses is what a node says instead of doing what it is told, while it has such
// a trouble, and to what, as servers of version 7 do.
var refuses = map[Trouble]*embedded.Refusal{
	Full:     {Error: "OOM command not allowed when used memory > 'maxmemory'.", Only: []string{"SET", "ZADD"}},
	ReadOnly: {Error: "READONLY You can't write against a read only replica.", Only: []string{"SET", "PEXPIRE", "DEL", "ZADD", "ZREM", "ZREMRANGEBYSCORE", "PEXPIREAT"}},
	Loading:  {Error: "LOADING Redis is loading the dataset in memory", Except: []string{"HELLO", "CLIENT", "INFO"}},
	Locked:   {Error: "NOAUTH Authentication required."},
	Crowded:  {Error: "ERR max number of clients reached", HangUp: true},
	Busy:     {Error: "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.", Except: []string{"HELLO"}},
	Mute:     {Error: "NOPERM this user has no permissions to run the 'publish' command", Only: []string{"PUBLISH"}},
}

// strike has a trouble begin, or end, and says whether it knows it. Keys are those
// of locks.
func (n *pipeNode) strike(f Fault, begin bool, keys []string) (known bool) {
	switch f.Trouble {
	case Kill, KillEmpty:
		if begin {
			n.Kill()
		} else {
			n.Restart(f.Trouble == Kill)
		}
	case Boot:
		if begin {
			n.Kill()
			n.Engine.Step(f.By)
			n.Restart(false)
		} else {
			n.Engine.Step(-f.By)
		}
	case Hang:
		if begin {
			n.Path.Hang()
		} else {
			n.Path.Resume()
		}
	case Slow:
		n.Path.SetDelay(on(begin, f.By))
	case Jitter:
		n.latency(on(begin, f.By))
	case Cut, CutRequests, CutReplies, Part:
		n.cut(f.Trouble, begin)
	case Clock:
		if begin {
			n.Engine.Step(f.By)
		} else {
			n.Engine.Step(-f.By)
		}
	case Full, ReadOnly, Loading, Locked, Crowded, Busy, Mute:
		if begin {
			n.Engine.Refuse(refuses[f.Trouble])
		} else {
			n.Engine.Refuse(nil)
		}
	case Foreign:
		for _, key := range keys {
			if begin {
				n.Engine.Put(key)
			} else {
				n.Engine.Take(key)
			}
		}
	default:
		return !begin || n.once(f)
	}
	return true
}

// cut has one of the cuts begin, or end. A node has one at a time.
func (n *pipeNode) cut(t Trouble, begin bool) {
	switch {
	case !begin && t == Part:
		n.Path.HealByReset()
	case !begin:
		n.Path.Heal()
	case t == CutRequests:
		n.Path.CutRequests()
	case t == CutReplies:
		n.Path.CutReplies()
	default:
		n.Path.Cut()
	}
}

// once is for what has no end, or comes to one by itself.
func (n *pipeNode) once(f Fault) (known bool) {
	switch f.Trouble {
	case Reset:
		n.Path.ResetAll()
	case Deafen:
		n.deafen()
	case LoseReplies:
		n.Path.DropReplies(f.Times)
	case TearReplies:
		n.Path.TearReplies(f.Times)
	case Repeat:
		n.Engine.Repeat(f.Times)
	case RepeatLate:
		var drawn atomic.Int64
		n.Engine.RepeatLate(f.Times, func() time.Duration {
			return f.By/2 + n.seed.For("repeat").Of(int(f.At)).Of(int(drawn.Add(1))).Below(f.By/2)
		})
	case Flush:
		n.Engine.Mini().FlushAll()
	case Evict:
		n.Engine.Evict(f.Times)
	case FlushScripts:
		n.Engine.FlushScripts()
	case Step:
		n.Engine.Step(f.By)
	default:
		return false
	}
	return true
}

// latency has messages take about half of a round trip each, now and then a lot
// more, as over the model's links, and up to jitter in addition.
func (n *pipeNode) latency(jitter time.Duration) {
	n.Path.SetLatency(func() time.Duration {
		n.drawn++
		id := n.seed.Of(n.drawn)
		d := n.rtt/4 + id.Below(n.rtt/2)
		if id.For("late").OneIn(32) {
			d += id.For("later").Below(8 * n.rtt)
		}
		return d + id.For("jitter").Below(jitter)
	})
}
