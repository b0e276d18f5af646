package redlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/internal/queue"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/ways"
)

// A model is a Redis of a few lines, for behaviour that is about the quorum and
// not about the wire. It counts time by the bubble's clock.
type model struct {
	name string

	mu      sync.Mutex
	keys    map[string]entry
	queues  map[string]*queue.Queue
	ears    map[chan string]string // to their channels
	mute    bool
	dead    string // of this process nothing arrives any more
	down    bool
	hung    chan struct{}  // closed on resume; nil: answering
	delay   time.Duration  // before and after each batch
	jitter  time.Duration  // and up to so much more before
	deaf    int            // batches to carry out without a reply
	fails   error          // the reply to everything
	spy     func(*request) // called with everything that is carried out
	seen    []string       // what was carried out, in order: "acquire a"
	ended   chan struct{}
	endOnce sync.Once
}

type entry struct {
	token   string
	expires time.Time
}

func newModel(name string) *model {
	return &model{name: name, keys: make(map[string]entry), queues: make(map[string]*queue.Queue), ears: make(map[chan string]string), ended: make(chan struct{})}
}

func (m *model) addr() string { return m.name }
func (m *model) interrupt()   { m.endOnce.Do(func() { close(m.ended) }) }

var errCut = errors.New("connection reset")

// answers waits until the model answers, as long as a lane would be patient.
func (m *model) answers() error {
	m.mu.Lock()
	hung, down, delay := m.hung, m.down, m.delay
	if m.jitter > 0 {
		delay += rand.N(m.jitter)
	}
	m.mu.Unlock()
	if down {
		return errCut
	}
	if hung != nil {
		select {
		case <-hung:
		case <-m.ended:
			return errCut
		case <-time.After(2 * time.Second):
			return fmt.Errorf("reading: %w", context.DeadlineExceeded)
		}
	}
	if delay > 0 {
		time.Sleep(delay)
	}
	return nil
}

func (m *model) fork() server { return m }

func (m *model) vouches(string, int64, int64, time.Time) bool { return true }

func (m *model) hear(ctx context.Context, channel string, ready func(), heard func(string)) error {
	if err := m.answers(); err != nil {
		return err
	}
	ear := make(chan string, 1000)
	m.set(func(m *model) { m.ears[ear] = channel })
	defer m.set(func(m *model) { delete(m.ears, ear) })
	ready()
	for {
		select {
		case message, ok := <-ear:
			if !ok {
				return errCut
			}
			if m.answers() == nil { // which takes as long as an answer
				heard(message)
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// deafen breaks all subscriptions.
func (m *model) deafen() {
	m.set(func(m *model) {
		for ear := range m.ears {
			close(ear)
		}
		clear(m.ears)
	})
}

// queue is that of a lock, and wake calls its first. Under the mutex.
func (m *model) queue(key string) *queue.Queue {
	if m.queues[key] == nil {
		m.queues[key] = new(queue.Queue)
	}
	return m.queues[key]
}

func (m *model) wake(key string) {
	if m.mute {
		return
	}
	for _, first := range m.queue(key).Next(time.Now().UnixMicro(), ways.Alone) {
		for ear, channel := range m.ears {
			if channel == script.WakeChannel+queue.Process(first.Waiter) {
				ear <- first.Waiter
			}
		}
	}
}

func (m *model) connect(context.Context) (time.Duration, error) {
	begin := time.Now()
	err := m.answers()
	return time.Since(begin), err
}

func (m *model) exec(batch []*request) error {
	err := m.answers()
	if err != nil {
		for _, q := range batch {
			q.reply = reply{outcome: classify(err), err: err}
		}
		return err
	}
	m.mu.Lock()
	for _, q := range batch {
		q.reply = m.do(q)
	}
	deaf, delay := m.deaf > 0, m.delay
	if deaf {
		m.deaf--
	}
	m.mu.Unlock()
	if delay > 0 {
		time.Sleep(delay)
	}
	if deaf {
		for _, q := range batch {
			q.reply = reply{outcome: Unreachable, err: errCut}
		}
		return errCut
	}
	return nil
}

func (m *model) do(q *request) reply {
	if m.fails != nil {
		return reply{outcome: classify(m.fails), err: m.fails}
	}
	if m.spy != nil {
		m.spy(q)
	}
	m.seen = append(m.seen, q.op.String()+" "+q.claim.key)
	now, c := time.Now(), q.claim
	e, there := m.keys[c.key]
	if there && !e.expires.After(now) {
		delete(m.keys, c.key)
		there = false
	}
	if m.dead != "" && strings.HasPrefix(c.waiter, m.dead) {
		return reply{outcome: Unreachable, err: errCut}
	}
	line, micros := m.queue(c.key), now.UnixMicro()
	enter := func() {
		if c.ticket > 0 && q.ticket != ours {
			line.Enter(queue.Entry{Waiter: c.waiter, Ticket: c.ticket, Deadline: micros/1000 + c.lease, Way: ways.Alone})
		}
	}
	switch {
	case q.op == opLeave:
		if line.Leave(c.waiter, c.ticket) && !there {
			m.wake(c.key)
		}
	case there && e.token != c.token:
		o := Stolen
		if q.op == opAcquire {
			enter()
			o = Held
		}
		return reply{outcome: o, holder: e.token, ttl: e.expires.Sub(now)}
	case q.op == opAcquire:
		if other, rest := line.Admits(micros, q.ticket, c.waiter, ways.Alone); !there && other != nil {
			enter()
			return reply{outcome: Reserved, holder: other.Waiter, ttl: milliseconds(rest)}
		}
		if !there {
			line.Leave(c.waiter, c.ticket)
			m.keys[c.key] = entry{c.token, now.Add(c.ttl)}
		}
	case !there:
		return reply{outcome: Expired}
	case q.op == opExtend:
		m.keys[c.key] = entry{c.token, now.Add(c.ttl)}
	case q.op == opRelease:
		delete(m.keys, c.key)
		if c.patient {
			enter()
		}
		m.wake(c.key)
	}
	return reply{outcome: Granted}
}

// holder says which token the node has under key now.
func (m *model) holder(key string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.keys[key]; e.expires.After(time.Now()) {
		return e.token
	}
	return ""
}

func (m *model) set(f func(*model)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(m)
}

func (m *model) put(key, token string, ttl time.Duration) {
	m.set(func(m *model) { m.keys[key] = entry{token, time.Now().Add(ttl)} })
}
func (m *model) forget()              { m.set(func(m *model) { clear(m.keys); clear(m.queues) }) }
func (m *model) kill()                { m.set(func(m *model) { m.down = true }); m.deafen() }
func (m *model) revive()              { m.set(func(m *model) { m.down = false }) }
func (m *model) hang()                { m.set(func(m *model) { m.hung = make(chan struct{}) }) }
func (m *model) resume()              { m.set(func(m *model) { close(m.hung); m.hung = nil }) }
func (m *model) slow(d time.Duration) { m.set(func(m *model) { m.delay = d }) }

// models is a set of nodes that any number of Lockers may use.
type models []*model

func newModels(n int) models {
	ms := make(models, n)
	for i := range ms {
		ms[i] = newModel(fmt.Sprintf("node%d", i))
	}
	return ms
}

// locker opens a Locker over the models that is closed when the test ends.
func (ms models) locker(t *testing.T, opts *Options) *Locker {
	t.Helper()
	lk, err := start(len(ms), opts, func(*Options) []server {
		servers := make([]server, len(ms))
		for i, m := range ms {
			servers[i] = m
		}
		return servers
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lk.Close() })
	return lk
}

// held says on how many nodes the key is held with this token.
func (ms models) held(key, token string) (n int) {
	for _, m := range ms {
		if m.holder(key) == token {
			n++
		}
	}
	return n
}

// left lists what is still on the nodes.
func (ms models) left() (keys []string) {
	for _, m := range ms {
		m.mu.Lock()
		for k, e := range m.keys {
			if e.expires.After(time.Now()) {
				keys = append(keys, m.name+": "+k)
			}
		}
		for k, q := range m.queues {
			for e := range q.Alive(time.Now().UnixMicro()) {
				keys = append(keys, m.name+": "+k+script.QueueSuffix+" "+e.Waiter)
			}
		}
		m.mu.Unlock()
	}
	slices.Sort(keys)
	return keys
}

// pass lets virtual time go by, and everything that it sets going come to rest.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// bubble runs f in a bubble of virtual time.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}
