package redlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/wire"
)

// A link is a model at the end of a link that delays each message by so much, and a little more.
type link struct {
	*modelConn
	delay, jitter time.Duration
}

func (f *link) pass() {
	d := f.delay
	if f.jitter > 0 {
		d += rand.N(f.jitter)
	}
	time.Sleep(d)
}

func (f *link) Exec(batch []*lane.Request) error {
	f.pass()
	defer f.pass()
	return f.modelConn.Exec(batch)
}

func (f *link) Connect(ctx context.Context) error {
	f.pass()
	f.pass()
	return f.modelConn.Connect(ctx)
}

// TestManyTryAtOnce: of clients that try in the same instant, and are each near to another node, exactly one gets
// the lock, in time, and the others leave nothing. Also if a node is down, and among clients of another library,
// which never have it at the same time.
func TestManyTryAtOnce(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct{ nodes, down, foreign int }{
		{1, 0, 0}, {2, 0, 0}, {3, 0, 0}, {3, 1, 0}, {3, 0, 3}, {4, 0, 0}, {4, 1, 0}, {5, 0, 0}, {5, 2, 0}, {5, 0, 3},
	} {
		for _, delay := range []time.Duration{0, ms, 20 * ms, 60 * ms} {
			t.Run(fmt.Sprintf("%d nodes, %d down, %v away, %d of another library", tt.nodes, tt.down, delay, tt.foreign), func(t *testing.T) {
				bubble(t, func(t *testing.T) { manyTry(t, tt.nodes, tt.down, tt.foreign, delay) })
			})
		}
	}
}

func manyTry(t *testing.T, nodes, down, foreign int, delay time.Duration) {
	const clients, rounds = 8, 25
	ms := newModels(nodes)
	for _, m := range ms[:down] {
		m.kill()
	}
	jitter := max(delay/20, 100*time.Microsecond)
	away := func(c int, m *model) time.Duration {
		if slices.Index(ms, m) == c%nodes {
			return delay / 20
		}
		return delay
	}
	var lks []*Locker
	for c := range clients {
		lks = append(lks, ms.over(t, nil, func(conn *modelConn) execs { return &link{conn, away(c, conn.model), jitter} }))
	}
	pass(time.Minute)
	for round := range rounds {
		name := fmt.Sprint("job-", round)
		var wg sync.WaitGroup
		var won, have atomic.Int32
		has := func() {
			won.Add(1)
			if have.Add(1) > 1 {
				t.Errorf("round %d: two have the lock at once", round)
			}
			time.Sleep(time.Second)
			have.Add(-1)
		}
		for c, lk := range lks {
			wg.Go(func() {
				begin := time.Now()
				l, err := lk.TryAcquire(t.Context(), name)
				if took := time.Since(begin); took > 500*time.Millisecond {
					t.Errorf("client %d took %v", c, took)
				}
				if err == nil {
					has()
					if err := l.Release(t.Context()); err != nil {
						t.Errorf("client %d releases: %v", c, err)
					}
				} else if !errors.Is(err, ErrHeld) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errVoid) {
					t.Errorf("client %d: %v", c, err)
				}
			})
		}
		for c := range foreign {
			wg.Go(func() {
				token := fmt.Sprint("theirs-", c)
				votes := make(chan bool, nodes)
				for _, m := range ms {
					go func() {
						time.Sleep(away(c, m) + rand.N(jitter))
						votes <- m.setNX(name, token, 10*time.Second)
						time.Sleep(away(c, m) + rand.N(jitter))
					}()
				}
				got := 0
				for range nodes {
					if <-votes {
						got++
					}
				}
				time.Sleep(delay + jitter)
				if got >= majority(nodes) {
					has()
				}
				for _, m := range ms {
					m.drop(name, token)
				}
			})
		}
		wg.Wait()
		if n := won.Load(); n != 1 && (foreign == 0 || n > 1) {
			t.Errorf("round %d: %d have had the lock", round, n)
		}
		pass(time.Second)
		ms.empty(t)
	}
}

// setNX is another library's request for a lock, and drop its release.
func (m *model) setNX(key, token string, ttl time.Duration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down || m.keys[key].expires.After(time.Now()) {
		return false
	}
	m.keys[key] = entry{token, time.Now().Add(ttl)}
	return true
}

func (m *model) drop(key, token string) {
	m.set(func(m *model) {
		if m.keys[key].token == token {
			delete(m.keys, key)
		}
	})
}

// TestTryAgainstAHolder: a try against a client that has the lock ends after a round trip or two, or soon after the middle of its
// NodeTimeout where so many of the holder's nodes are down that nobody is seen to have a quorum. It leaves nothing.
func TestTryAgainstAHolder(t *testing.T) {
	for _, tt := range []struct {
		nodes     int
		has, down []int
		most      time.Duration
	}{
		{1, []int{0}, nil, 50 * time.Millisecond},
		{2, []int{0, 1}, nil, 50 * time.Millisecond},
		{3, []int{0, 1, 2}, nil, 50 * time.Millisecond},
		{3, []int{0, 1, 2}, []int{2}, 50 * time.Millisecond},
		{3, []int{0, 2}, []int{2}, 400 * time.Millisecond}, // node 1 grants, and it may be a client far away that has node 0
		{4, []int{0, 1, 2}, nil, 50 * time.Millisecond},
		{4, []int{0, 1, 2, 3}, []int{3}, 50 * time.Millisecond},
		{5, []int{0, 1, 2}, []int{0, 1}, 400 * time.Millisecond},
	} {
		t.Run(fmt.Sprintf("%d nodes, held at %v, down: %v", tt.nodes, tt.has, tt.down), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				ms := newModels(tt.nodes)
				lk := ms.over(t, nil, func(conn *modelConn) execs { return &link{conn, 10 * time.Millisecond, 0} })
				for _, i := range tt.has {
					ms[i].put("a", "theirs", time.Minute)
				}
				for _, i := range tt.down {
					ms[i].kill()
				}
				pass(time.Second)
				_, _ = lk.TryAcquire(t.Context(), "other") // the lanes learn which nodes are down
				pass(time.Second)
				begin := time.Now()
				_, err := lk.TryAcquire(t.Context(), "a")
				if took := time.Since(begin); took > tt.most || !errors.Is(err, ErrHeld) {
					t.Errorf("after %v: %v", took, err)
				}
				pass(time.Second)
				for _, left := range ms.left() {
					if !strings.HasSuffix(left, ": a") && !strings.HasSuffix(left, ": other") {
						t.Error("left:", left)
					}
				}
			})
		})
	}
}

// TestTryBehindReaders: a try ends soon where clients that came before hold the lock together, although the nodes name
// different ones of them. If they have just released it, and are there no more when the try asks again, it gets the lock.
func TestTryBehindReaders(t *testing.T) {
	const ms = time.Millisecond
	for _, gone := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			nodes := newModels(4)
			lk := nodes.over(t, nil, func(conn *modelConn) execs { return &link{conn, ms, 0} })
			for i, m := range nodes {
				m.put("a", wire.Sign(fmt.Sprint("reader", i%2), time.Now(), "", "", ""), 10*time.Second)
			}
			pass(time.Second)
			if gone {
				time.AfterFunc(3*ms, func() {
					for _, m := range nodes {
						m.forget()
					}
				})
			}
			begin := time.Now()
			_, err := lk.TryAcquire(t.Context(), "a")
			if took := time.Since(begin); took > 20*ms || !gone && !errors.Is(err, ErrHeld) || gone && err != nil {
				t.Errorf("gone: %v; after %v: %v", gone, took, err)
			}
		})
	}
}

// TestTryOutlastsOthers: a try goes on where those whose tokens and places it sees may all come to nothing. When they
// have gone, it gets the lock.
func TestTryOutlastsOthers(t *testing.T) {
	const ms = time.Millisecond
	contender := func(ticket int64) *wire.Contender { return &wire.Contender{Ticket: ticket, Nonce: "other"} }
	for name, tt := range map[string]struct {
		void   bool // what plain commands do is no vote
		others func(nodes models, now time.Time)
		until  time.Duration // they go
	}{
		"first attempts of clients that are far away": {false, func(nodes models, now time.Time) {
			for i, m := range nodes[:2] {
				m.put("a", wire.Sign(fmt.Sprint("far", i), now, "a", "", ""), time.Minute)
			}
		}, 150 * ms},
		"two attempts of a client that came later": {false, func(nodes models, now time.Time) {
			for i, m := range nodes[:2] {
				m.put("a", wire.Sign(contender(now.Add(time.Second).UnixMicro()).Secret(int64(i+1)), now, "a", "", ""), time.Minute)
			}
		}, 20 * ms},
		"places of a client that gave up for this one": {true, func(nodes models, now time.Time) {
			c := contender(now.Add(-ms).UnixMicro())
			for _, m := range nodes[:2] {
				m.set(func(m *model) {
					m.queue("a").Enter(wire.QueueEntry{Waiter: c.Waiter(), Ticket: c.Ticket, Deadline: now.UnixMilli() + 500, Mode: wire.ModeX})
				})
			}
		}, 20 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				nodes := newModels(3)
				lk := nodes.over(t, nil, func(c *modelConn) execs {
					if tt.void {
						return &voiding{c}
					}
					return c
				})
				pass(time.Minute)
				tt.others(nodes, time.Now())
				time.AfterFunc(tt.until, func() {
					for _, m := range nodes[:2] {
						m.set(func(m *model) {
							if s := wire.Secret(m.keys["a"].token); strings.HasPrefix(s, "far") || strings.Contains(s, "-other/") {
								delete(m.keys, "a")
							}
							*m.queue("a") = slices.DeleteFunc(*m.queue("a"), func(e wire.QueueEntry) bool { return strings.HasSuffix(e.Waiter, "-other.0") })
						})
					}
				})
				l, err := lk.TryAcquire(t.Context(), "a")
				if err != nil {
					t.Fatal(err)
				}
				if err := l.Release(t.Context()); err != nil {
					t.Error(err)
				}
				pass(time.Second)
				nodes.empty(t)
			})
		})
	}
}

// A voiding connection is to a node at which what plain commands do is no vote: there is a queue, say.
type voiding struct{ *modelConn }

func (v *voiding) Exec(batch []*lane.Request) error {
	err := v.modelConn.Exec(batch)
	for _, q := range batch {
		if q.Step() == wire.Plain && (q.Reply.Status == wire.Granted || q.Reply.Status == wire.Reserved) {
			q.Reply = wire.Reply{Status: wire.Void, Time: time.Now().UnixMicro(), Mark: q.Mark, Err: errors.New("other clients wait for the lock")}
		}
	}
	return err
}

// TestTryIsBounded: a try takes a NodeTimeout at the most, also with nodes that hang, and as the first call of a
// Locker; and one node that hangs does not keep it from the lock.
func TestTryIsBounded(t *testing.T) {
	for _, hung := range []int{1, 2, 3} {
		for _, known := range []bool{false, true} {
			for _, held := range []bool{false, true} {
				t.Run(fmt.Sprintf("%d hang, known before: %v, held: %v", hung, known, held), func(t *testing.T) {
					bubble(t, func(t *testing.T) {
						ms := newModels(3)
						if held {
							ms[2].put("a", "theirs", time.Hour)
						}
						var lk *Locker
						if known {
							lk = ms.locker(t, nil)
							pass(time.Minute)
						}
						for _, m := range ms[:hung] {
							m.hang()
						}
						if !known {
							lk = ms.locker(t, nil)
						}
						begin := time.Now()
						l, err := lk.TryAcquire(t.Context(), "a")
						if took := time.Since(begin); took > lk.settings().NodeTimeout {
							t.Errorf("it took %v", took)
						}
						if free := hung == 1 && !held; (l != nil) != free {
							t.Error(err)
						}
						for _, m := range ms[:hung] {
							m.resume()
						}
					})
				})
			}
		}
	}
}
