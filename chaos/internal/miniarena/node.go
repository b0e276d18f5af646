package miniarena

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/chaos/internal/inject"
	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/testbed/memredis"
)

// Cannot are the kinds of fault that this arena cannot inject.
var Cannot = []history.FaultKind{
	history.Churn, history.Still, history.Mislead, history.Restore, history.Copy, history.Remake, // other arenas have them
	history.CutFile, history.FlipFile, history.OldFile, history.OtherFile, history.PowerCut, history.DiskFull, // it has no files
	history.Slew,
}

// A node is a miniredis behind pipes, and can inject nearly all faults of nodes.
type node struct {
	*memredis.Node
	seed  sim.Seed
	rtt   time.Duration
	drawn int // of latencies; guarded by the path, which asks for one after another

	values inject.Values // of other programs; guarded by the faults, of which one ends before the next begins

	mu            sync.Mutex // never held while waiting
	subscriptions map[*subscription]struct{}
}

// refuses has the errors of a node that has such a fault, and the commands that it refuses, as
// servers of version 7 do.
var refuses = map[history.FaultKind]*memredis.Refusal{
	history.Full:     {Error: "OOM command not allowed when used memory > 'maxmemory'.", Only: []string{"SET", "ZADD"}},
	history.ReadOnly: {Error: "READONLY You can't write against a read only replica.", Only: []string{"SET", "PEXPIRE", "DEL", "ZADD", "ZREM", "ZREMRANGEBYSCORE", "PEXPIREAT"}},
	history.Loading:  {Error: "LOADING Redis is loading the dataset in memory", Except: []string{"HELLO", "CLIENT", "INFO"}},
	history.Locked:   {Error: "NOAUTH Authentication required."},
	history.Crowded:  {Error: "ERR max number of clients reached", HangUp: true},
	history.Busy:     {Error: "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.", Except: []string{"HELLO"}},
	history.Mute:     {Error: "NOPERM this user has no permissions to run the 'publish' command", Only: []string{"PUBLISH"}},
}

// inject begins or ends a fault, and reports whether it knows the kind. The keys are those of locks.
func (n *node) inject(f history.Fault, begin bool, keys []string) (known bool) {
	if inject.Power(n, f, begin) || inject.Cut(n.Path, f, begin) {
		return true
	}
	switch f.Kind {
	case history.Hang:
		if begin {
			n.Path.Hang()
		} else {
			n.Path.Resume()
		}
	case history.Slow:
		n.Path.SetDelay(inject.During(begin, f.By))
	case history.Jitter:
		n.latency(inject.During(begin, f.By))
	case history.Full, history.ReadOnly, history.Loading, history.Locked, history.Crowded, history.Busy, history.Mute:
		if begin {
			n.Engine.Refuse(refuses[f.Kind])
		} else {
			n.Engine.Refuse(nil)
		}
	case history.Foreign:
		for _, key := range keys {
			if begin {
				n.Engine.Put(key)
			} else {
				n.Engine.Take(key)
			}
		}
	case history.Values:
		if begin {
			n.values.Put(keys, int(f.At), n.eval)
		} else {
			n.values.Take(n.eval)
		}
	default:
		return !begin || n.once(f)
	}
	return true
}

// eval runs a script on the node, and returns its reply.
func (n *node) eval(script, key, kind string) int { return n.Engine.Eval(script, []string{key}, kind) }

// strange returns an error if a value of another program was changed, or sent to clients.
func (n *node) strange() error {
	var errs []error
	for _, what := range n.values.Changed {
		errs = append(errs, fmt.Errorf("node %s: a value of another program was changed at %s", n.Options().Addr, what))
	}
	if sent := n.Path.Stats().ReplyBytes; n.values.Ever && sent > inject.MostReplies {
		errs = append(errs, fmt.Errorf("node %s has sent %d bytes", n.Options().Addr, sent))
	}
	return errors.Join(errs...)
}

// Step sets the node's clock forward by d, or back.
func (n *node) Step(d time.Duration) { n.Engine.Step(d) }

// once injects a fault that has no end, or ends by itself.
func (n *node) once(f history.Fault) (known bool) {
	switch f.Kind {
	case history.Reset:
		n.Path.ResetAll()
	case history.Forget:
		n.Path.Forget()
	case history.Deafen:
		n.deafen()
	case history.LoseReplies:
		n.Path.DropReplies(f.Times)
	case history.TearReplies:
		n.Path.TearReplies(f.Times)
	case history.Repeat:
		n.Engine.Repeat(f.Times)
	case history.RepeatLate:
		var drawn atomic.Int64
		n.Engine.RepeatLate(f.Times, func() time.Duration {
			return f.By/2 + n.seed.For("repeat").Of(int(f.At)).Of(int(drawn.Add(1))).Below(f.By/2)
		})
	case history.Flush:
		n.Engine.Mini().FlushAll()
	case history.Evict:
		n.Engine.Evict(f.Times)
	case history.FlushScripts:
		n.Engine.FlushScripts()
	case history.Step:
		n.Step(f.By)
	default:
		return false
	}
	return true
}

// latency makes messages take about half of a round trip each, now and then a lot more, as over the
// model's links, and up to jitter in addition.
func (n *node) latency(jitter time.Duration) {
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
