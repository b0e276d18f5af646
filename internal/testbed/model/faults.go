package model

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/wire"
)

// Kill ends the node's process as SIGKILL does, and breaks all connections. Its data stays for Restart.
func (n *Node) Kill() {
	n.set(func() { n.down, n.hung, n.epoch = true, false, n.epoch+1; n.dropSubscriptions() })
}

// Return undoes Kill: the process has run all the time, and could not be reached.
func (n *Node) Return() { n.set(func() { n.down = false }) }

// Restart starts the node again, with or without the data that it had.
func (n *Node) Restart(keepData bool) {
	n.set(func() {
		n.begin()
		if !keepData {
			n.forget()
		}
	})
}

// begin starts the node as another process, with the data that it has. Caller holds n.mu.
func (n *Node) begin() {
	n.down = false
	n.run++
	clear(n.scripts)
}

// Hang stops the node, as SIGSTOP does; false: it goes on, with what has arrived meanwhile.
func (n *Node) Hang(on bool) { n.set(func() { n.hung = on }) }

// Cut holds back requests, replies or both, from now on; false: it lets those go that were held back.
func (n *Node) Cut(requests, replies bool) { n.set(func() { n.cut = [2]bool{requests, replies} }) }

// Stall holds back requests over the connections that there are, while new connections work; false: it lets them go.
func (n *Node) Stall(on bool) {
	n.set(func() {
		if n.stalled = (time.Time{}); on {
			n.stalled = time.Now()
		}
	})
}

// Reset breaks all connections, and loses the messages that were held back on them.
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

// Delay makes each request and each reply take longer, by half of roundTrip and by up to jitter.
func (n *Node) Delay(roundTrip, jitter time.Duration) {
	n.set(func() { n.slow, n.jitter = roundTrip/2, jitter })
}

// Native gives the node the commands of newer servers that compare a token (wire.NativeAnswer). Call it before Dial.
func (n *Node) Native() { n.native = true }

// Refuse makes the node answer everything with this error, or what is about these keys; nil: no more.
func (n *Node) Refuse(err error, keys ...string) {
	n.set(func() { n.refuses, n.about = err, keys })
}

// ReadOnly makes the node refuse to write.
func (n *Node) ReadOnly(on bool) { n.set(func() { n.readOnly = on }) }

// Full makes the node refuse writes that need memory.
func (n *Node) Full(on bool) { n.set(func() { n.full = on }) }

// Lose loses so many of the next replies, with their connections; Tear loses the second half of each.
func (n *Node) Lose(times int) { n.set(func() { n.lose = times }) }
func (n *Node) Tear(times int) { n.set(func() { n.tear = times }) }

// Repeat carries out so many of the next messages twice; RepeatLate, again later: after between after/2 and after.
func (n *Node) Repeat(times int) { n.set(func() { n.repeat = times }) }
func (n *Node) RepeatLate(times int, after time.Duration) {
	n.set(func() { n.repeatLate, n.repeatAfter = times, after })
}

// Churn makes another client load the scripts in the middle of a message of several calls, if they were dropped.
func (n *Node) Churn(on bool) { n.set(func() { n.lateScripts = on }) }

// Flush drops all keys, FlushScripts all scripts.
func (n *Node) Flush()        { n.set(n.forget) }
func (n *Node) FlushScripts() { n.set(func() { clear(n.scripts) }) }

func (n *Node) SetMarker(text string) { n.set(func() { n.marker = text }) }

// FlushCounters drops the counters of fences, and nothing else.
func (n *Node) FlushCounters() { n.set(func() { clear(n.counts) }) }

// Evict drops the first locks, up to this number, but not their counters.
func (n *Node) Evict(some int) {
	n.set(func() {
		for _, key := range n.list()[:min(some, len(n.list()))] {
			delete(n.keys, key)
		}
	})
}

// Put makes a key of another type with this name, unless there is one already; Take removes it.
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

// SetNX sets a key, as another program does, if the node is up and has no such key. It returns whether it did.
func (n *Node) SetNX(key, token string, ttl time.Duration) (done bool) {
	n.set(func() {
		if _, there := n.lookup(key); !there && !n.down {
			n.keys[key], done = entry{token: token, expires: n.now() + ttl}, true
		}
	})
	return done
}

// Delete deletes keys, as another program does; without any, all locks, queues and notes of broken tokens.
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

// Before makes the node call f with each message before it executes it, and with the process that sent it. The node
// executes the message when the channel that f returns is closed; nil: at once. f is called with n.mu held, so it must
// not use the node.
func (n *Node) Before(f func(from *Host, calls []Call) <-chan struct{}) {
	n.set(func() { n.before = f })
}

// Step sets the node's clock forward by d; negative: back.
func (n *Node) Step(d time.Duration) { n.set(func() { n.offset += d }) }

// Rate makes the node's clock run faster than true time by this part of it, such as 0.01.
func (n *Node) Rate(r float64) { n.set(func() { n.rate = r }) }

// Keep replaces the description of the set that the node keeps, as a client with write access or a snapshot can. text
// is what wire.ParseKept reads, here and below.
func (n *Node) Keep(text string) { n.set(func() { n.kept = wire.ParseKept(text) }) }

// Restore starts the node from a snapshot that has nothing but the description of a set.
func (n *Node) Restore(text string) {
	n.set(func() {
		n.begin()
		n.forget()
		n.kept = wire.ParseKept(text)
	})
}

// Copy starts the node with a copy of all data of another node, as from a backup of that one.
func (n *Node) Copy(of *Node) {
	of.mu.Lock()
	data := store{keys: maps.Clone(of.keys), counts: maps.Clone(of.counts), queues: make(map[string]*queue), marker: of.marker, kept: of.kept, choice: of.choice}
	for key, e := range data.keys {
		e.set = maps.Clone(e.set)
		data.keys[key] = e
	}
	for key, q := range of.queues {
		data.queues[key] = &queue{slices.Clone(q.Queue), q.expires}
	}
	of.mu.Unlock()
	n.set(func() {
		n.begin()
		n.keys, n.counts, n.queues, n.marker, n.kept, n.choice = data.keys, data.counts, data.queues, data.marker, data.kept, data.choice
	})
}

// Forget drops the description of the set and the marker, as redlock members forget does.
func (n *Node) Forget() { n.Remake("") }

// Remake replaces the description, drops the marker and breaks connections, as redlock members restore does.
func (n *Node) Remake(text string) {
	n.set(func() { n.marker, n.kept, n.choice, n.epoch = "", wire.ParseKept(text), choice{}, n.epoch+1 })
}

func (n *Node) Up() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.down
}
