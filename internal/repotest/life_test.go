package repotest_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/replace"
	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/testbed/memredis"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/golden"
	"github.com/quorumlock/redlock/redlocktrace"
)

// TestLifeOfALock runs the life of a lock over five nodes, and fails if docs/life.svg is not what its events
// draw. With -update it writes the picture anew.
func TestLifeOfALock(t *testing.T) {
	const picture = "docs/life.svg"
	var l *life
	synctest.Test(t, func(t *testing.T) { l = live(t) })
	if t.Failed() {
		return
	}
	if !golden.Lines(t, picture, l.draw(), *update) {
		t.Errorf("%s is not what the code draws now: go test ./internal/repotest -run TestLifeOfALock -update writes it anew. Look at it", picture)
	}
}

// A life is what was recorded of the life of a lock: by the hooks and the trace of both clients, by the calls
// that killed and restarted nodes, and by looking at the nodes' keys.
type life struct {
	start time.Time
	nodes []string // addresses

	mu    sync.Mutex
	calls []lifeCall   // of clients, by their end
	votes []lifeVote   // the nodes' answers
	keys  [][]lifeKey  // for each node, whose token it has, from when to when
	down  [][]lifeSpan // for each node

	quarantine [][]lifeSpan // for each node, when its grants are no votes
}

type (
	lifeSpan struct{ from, to time.Duration }
	lifeKey  struct {
		lifeSpan
		token, client string
	}
	// A lifeVote is the answer of a node to a step of a client's operation. It counts if it is a vote.
	lifeVote struct {
		at           time.Duration
		node         int
		client, step string
		counts       bool
	}
	// A lifeCall is an operation of a client.
	lifeCall struct {
		lifeSpan
		client, op string
		waited     time.Duration // of to - from
		fence      int64
		valid      time.Duration // from its end on
	}
)

const (
	lifeName  = "report"
	lifeNodes = 5
	lifeTrip  = 4 * time.Millisecond // to a node and back
)

// What happens when, since the beginning of the picture.
const (
	lifeAcquire       = 500 * time.Millisecond   // A gets the lock,
	lifeKill          = 2 * time.Second          // two nodes are killed,
	lifeExtend        = 3500 * time.Millisecond  // A extends it,
	lifeWait          = 5 * time.Second          // B asks for it and waits,
	lifeRelease       = 6500 * time.Millisecond  // A releases it, and B gets it,
	lifeRestart       = 8 * time.Second          // the two nodes are started again, without their data,
	lifeDone          = 10 * time.Second         // B releases it,
	lifeSecond        = 11500 * time.Millisecond // A gets it while the two nodes are in quarantine,
	lifeSecondRelease = 14 * time.Second
	lifeThird         = 20 * time.Second // and once more when they are not.
	lifeThirdRelease  = 22500 * time.Millisecond
	lifeEnd           = 23 * time.Second
)

// The nodes that are killed, counted from 0.
var lifeKilled = []int{3, 4}

// live runs it, in a bubble of testing/synctest.
func live(t *testing.T) *life {
	nodes := redistest.NewBubble(t, lifeNodes)
	l := &life{keys: make([][]lifeKey, lifeNodes), down: make([][]lifeSpan, lifeNodes), quarantine: make([][]lifeSpan, lifeNodes)}
	for i := range lifeNodes {
		// Each has a delay of its own, so that their answers have one order.
		nodes.Path(i).SetDelay(lifeTrip + time.Duration(i)*10*time.Microsecond)
		l.nodes = append(l.nodes, nodes.Addr(i))
	}
	client := func(name string) *redlock.Locker {
		clients := make([]*redis.Client, lifeNodes)
		for i := range clients {
			opts := nodes.Options(i)
			opts.Dialer = memredis.Quiet(opts.Dialer)
			clients[i] = redis.NewClient(opts)
			t.Cleanup(func() { _ = clients[i].Close() })
		}
		opts := &redlock.Options{Hooks: l.hooks(name), Owner: name}
		replace.In(opts, replace.Parts{Host: newLifeHost(name)})
		lk, err := redlock.New(clients, opts)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = lk.Close() })
		return lk
	}
	a, b := client("A"), client("B")
	for _, lk := range []*redlock.Locker{a, b} {
		if err := lk.WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(2 * time.Second)))
	l.begin()

	watched := make(chan struct{})
	stop := make(chan struct{})
	go func() {
		defer close(watched)
		l.watch(nodes, stop)
	}()
	until := func(at time.Duration) { time.Sleep(time.Until(l.start.Add(at))) }
	must := func(err error) {
		if err != nil {
			t.Errorf("%v: %v", l.now(), err)
		}
	}

	acquire := func(lk *redlock.Locker) *redlock.Lock {
		lock, err := lk.Acquire(t.Context(), lifeName)
		must(err)
		return lock
	}
	release := func(lock *redlock.Lock) { must(lock.Release(t.Context())) }

	until(lifeAcquire)
	lockA := acquire(a)
	until(lifeKill)
	for _, i := range lifeKilled {
		nodes.Kill(i)
		l.begins(l.down, i)
	}
	until(lifeExtend)
	must(lockA.Extend(t.Context()))
	until(lifeWait)
	next := make(chan *redlock.Lock, 1)
	go func() { next <- acquire(b) }()
	until(lifeRelease)
	release(lockA)
	lockB := <-next
	until(lifeRestart)
	for _, i := range lifeKilled {
		l.ends(l.down, i)
		nodes.Restart(i, false)
	}
	until(lifeDone)
	release(lockB)
	until(lifeSecond)
	second := acquire(a)
	until(lifeSecondRelease)
	release(second)
	until(lifeThird)
	third := acquire(a)
	until(lifeThirdRelease)
	release(third)
	if !(lockA.Fence() < lockB.Fence() && lockB.Fence() < second.Fence() && second.Fence() < third.Fence()) {
		t.Errorf("the fences do not rise: %d, %d, %d, %d", lockA.Fence(), lockB.Fence(), second.Fence(), third.Fence())
	}
	until(lifeEnd)
	close(stop)
	<-watched

	l.mu.Lock()
	defer l.mu.Unlock()
	for _, i := range lifeKilled {
		if q := l.quarantine[i]; len(q) != 1 || q[0].to == 0 {
			t.Fatalf("the quarantines of node %d: %v", i, q)
		}
	}
	for _, keys := range l.keys {
		for i := range keys {
			switch keys[i].token {
			case lockA.Token(), second.Token(), third.Token():
				keys[i].client = "A"
			case lockB.Token():
				keys[i].client = "B"
			default:
				t.Errorf("a node has the token %q, which is neither A's nor B's", keys[i].token)
			}
		}
	}
	return l
}

// begin forgets what was recorded so far, such as the quarantine of new nodes.
func (l *life) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.start = time.Now()
	l.calls, l.votes = nil, nil
	clear(l.quarantine)
}

func (l *life) now() time.Duration { return time.Since(l.start) }

// begins and ends record a state of a node, which two clients may tell of.
func (l *life) begins(of [][]lifeSpan, node int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(of[node]); n == 0 || of[node][n-1].to != 0 {
		of[node] = append(of[node], lifeSpan{from: l.now()})
	}
}

func (l *life) ends(of [][]lifeSpan, node int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(of[node]); n > 0 && of[node][n-1].to == 0 {
		of[node][n-1].to = l.now()
	}
}

// hooks record what a client's Locker tells. Of the quarantine each client judges by itself: the picture has
// A's view.
func (l *life) hooks(client string) *redlock.Hooks {
	node := func(addr string) int { return slices.Index(l.nodes, addr) }
	h := &redlock.Hooks{Trace: &redlocktrace.Trace{
		Node: func(_ context.Context, r redlocktrace.Reply) {
			granted := r.Err == nil
			if !granted && r.Outcome != redlock.OutcomeQuarantined.String() {
				return
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			l.votes = append(l.votes, lifeVote{l.now(), node(r.Node), client, r.Step, granted})
		},
		End: func(_ context.Context, op redlocktrace.Operation) {
			l.mu.Lock()
			defer l.mu.Unlock()
			now := l.now()
			call := lifeCall{lifeSpan: lifeSpan{now - op.Elapsed, now}, client: client, op: op.Op, waited: op.Waited}
			if op.Lock != nil {
				call.fence, call.valid = op.Lock.Fence(), time.Until(op.Lock.Until())
			}
			l.calls = append(l.calls, call)
		},
	}}
	if client == "A" {
		h.Quarantined = func(addr string, _ time.Duration, _ error) { l.begins(l.quarantine, node(addr)) }
		h.Votes = func(addr string) { l.ends(l.quarantine, node(addr)) }
	}
	return h
}

// watch looks at the nodes' keys.
func (l *life) watch(nodes *redistest.Bubble, stop <-chan struct{}) {
	time.Sleep(time.Millisecond / 2) // nodes are killed and restarted at whole milliseconds: a look in the middle of that could see either
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-stop:
			return
		case <-look.C:
		}
		l.mu.Lock()
		for i := range lifeNodes {
			token, _ := nodes.Mini(i).Get(lifeName) // "": there is no key
			now, seen := l.now(), l.keys[i]
			if n := len(l.down[i]); n > 0 && l.down[i][n-1].to == 0 {
				token = ""
			}
			if n := len(seen); n > 0 && seen[n-1].to == 0 {
				if seen[n-1].token == token {
					continue
				}
				seen[n-1].to = now
			}
			if token != "" {
				l.keys[i] = append(seen, lifeKey{lifeSpan{from: now}, token, ""})
			}
		}
		l.mu.Unlock()
	}
}

// A lifeHost is chance that is the same in each run.
type lifeHost struct {
	sim.Chance
	mu  sync.Mutex
	rng *rand.Rand
}

func newLifeHost(client string) *lifeHost {
	return &lifeHost{rng: rand.New(rand.NewPCG(1, uint64(client[0])))}
}

func (*lifeHost) Jitter() float64 { return 0.5 }

func (h *lifeHost) Token() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var id uuid.UUID
	for i := range id {
		id[i] = byte(h.rng.Uint32())
	}
	return id.String()
}
