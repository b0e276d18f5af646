package model

import (
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/wire"
)

// Kill ends the node as SIGKILL does.
func (n *Node) Kill() {
	n.set(func() { n.down, n.hung, n.epoch = true, false, n.epoch+1; n.dropSubscriptions() })
}

// Return undoes Kill: the process has run all the time, and could not be reached.
func (n *Node) Return() { n.set(func() { n.down = false }) }

// Restart starts it again, with what it had or without.
func (n *Node) Restart(keepData bool) {
	n.set(func() {
		n.down = false
		n.run++
		clear(n.scripts)
		if !keepData {
			n.forget()
		}
	})
}

// Hang stops the node, as SIGSTOP does, and has it go on.
func (n *Node) Hang(on bool) { n.set(func() { n.hung = on }) }

// Cut holds back requests, replies or both, and lets them go.
func (n *Node) Cut(requests, replies bool) { n.set(func() { n.cut = [2]bool{requests, replies} }) }

// Reset breaks all connections. What was held back on them is lost.
func (n *Node) Reset() {
	n.set(func() {
		n.epoch++
		for _, m := range append(n.parked, n.unanswered...) {
			m.end(errReset)
		}
		n.parked, n.unanswered = nil, nil
		n.dropSubscriptions()
	})
}

// Delay has each message take so much longer, half a round trip and up to jitter.
func (n *Node) Delay(roundTrip, jitter time.Duration) {
	n.set(func() { n.slow, n.jitter = roundTrip/2, jitter })
}

// Native gives it the commands that compare a token themselves, as a newer server has them
// (wire.NativeAnswer). It is called before the node is used.
func (n *Node) Native() { n.native = true }

// Refuse has the node say this to everything, or to what is about these keys; nil: no more.
func (n *Node) Refuse(err error, keys ...string) {
	n.set(func() { n.refuses, n.about = err, keys })
}

// ReadOnly has it refuse to write.
func (n *Node) ReadOnly(on bool) { n.set(func() { n.readOnly = on }) }

// Full has it refuse to write what needs memory.
func (n *Node) Full(on bool) { n.set(func() { n.full = on }) }

// Lose has the next times replies get lost with their connections, or be torn.
func (n *Node) Lose(times int) { n.set(func() { n.lose = times }) }
func (n *Node) Tear(times int) { n.set(func() { n.tear = times }) }

// Repeat has the next times messages carried out twice; RepeatLate the second
// time up to so much later, and at least half of that.
func (n *Node) Repeat(times int) { n.set(func() { n.repeat = times }) }
func (n *Node) RepeatLate(times int, after time.Duration) {
	n.set(func() { n.repeatLate, n.repeatAfter = times, after })
}

// Churn makes another client load scripts that were dropped again, in the middle of a pipeline.
func (n *Node) Churn(on bool) { n.set(func() { n.lateScripts = on }) }

// Flush drops all keys, FlushScripts all scripts.
func (n *Node) Flush()        { n.set(n.forget) }
func (n *Node) FlushScripts() { n.set(func() { clear(n.scripts) }) }

// SetMarker has the node's marker say something else.
func (n *Node) SetMarker(text string) { n.set(func() { n.marker = text }) }

// FlushCounters drops the numbers, and nothing else.
func (n *Node) FlushCounters() { n.set(func() { clear(n.counts) }) }

// Evict drops some locks, but not their counters.
func (n *Node) Evict(some int) {
	n.set(func() {
		for _, key := range n.list()[:min(some, len(n.list()))] {
			delete(n.keys, key)
		}
	})
}

// Put makes a key of another type with this name, unless there is one already;
// Take takes it away.
func (n *Node) Put(key string) {
	n.set(func() {
		if _, there := n.lookup(key); !there {
			n.keys[key] = entry{foreign: true}
		}
	})
}
func (n *Node) Take(key string) {
	n.set(func() {
		if n.keys[key].foreign {
			delete(n.keys, key)
		}
	})
}

// SetNX has another program set a key, if the node runs and there is none. It returns whether that is so.
func (n *Node) SetNX(key, token string, ttl time.Duration) (done bool) {
	n.set(func() {
		if _, there := n.lookup(key); !there && !n.down {
			n.keys[key], done = entry{token: token, expires: n.now() + ttl}, true
		}
	})
	return done
}

// Delete has another program delete keys; without any, all locks, queues and notes of broken tokens.
func (n *Node) Delete(keys ...string) {
	n.set(func() {
		if len(keys) == 0 {
			clear(n.keys)
			clear(n.queues)
		}
		for _, key := range keys {
			if of, is := strings.CutSuffix(key, script.QueueSuffix); is {
				delete(n.queues, of)
			}
			delete(n.keys, key)
		}
	})
}

// Before has f called with each message before the node executes it, and with what sent it. The node executes it when the
// channel that f returns is closed, and at once if that is nil. f must not use the node, whose mutex is held.
func (n *Node) Before(f func(from *Host, calls []Call) <-chan struct{}) {
	n.set(func() { n.before = f })
}

// Step sets the node's clock forward, or back.
func (n *Node) Step(d time.Duration) { n.set(func() { n.offset += d }) }

// Rate has its clock run faster than true time by this part of it.
func (n *Node) Rate(r float64) { n.set(func() { n.rate = r }) }

// Keep has the node keep a text in the place of the description of its set, as a client does that can write to it, or a
// snapshot that is restored.
func (n *Node) Keep(text string) { n.set(func() { n.kept = wire.ParseKept(text) }) }

// Restore starts the node again from a snapshot that has nothing but the description of a set.
func (n *Node) Restore(text string) {
	n.set(func() {
		n.down = false
		n.run++
		clear(n.scripts)
		n.forget()
		n.kept = wire.ParseKept(text)
	})
}

// Forget is what redlock members forget does.
func (n *Node) Forget() { n.Remake("") }

// Remake is what redlock members restore does: Forget and Keep in one step.
func (n *Node) Remake(text string) {
	n.set(func() { n.marker, n.kept, n.choice, n.epoch = "", wire.ParseKept(text), choice{}, n.epoch+1 })
}

// Up reports whether the node runs.
func (n *Node) Up() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.down
}
