package redlock

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/script"
	arena "github.com/quorumlock/redlock/internal/testbed/model"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
	"github.com/quorumlock/redlock/internal/wire"
)

// TestFenceIsTheLargestNumberGranted: which number of a round is the fence, and whether that is stored
// yet. Only the grants of nodes with a vote count.
func TestFenceIsTheLargestNumberGranted(t *testing.T) {
	type answer struct {
		outcome wire.Status
		number  int64
	}
	const silent = wire.Unasked
	for _, tt := range []struct {
		answers []answer
		number  int64
		stored  bool
	}{
		{[]answer{{wire.Granted, 7}, {wire.Granted, 7}, {wire.Granted, 7}, {silent, 0}, {silent, 0}}, 7, true},
		{[]answer{{wire.Granted, 7}, {wire.Granted, 7}, {wire.Granted, 8}, {silent, 0}, {silent, 0}}, 8, false},
		{[]answer{{wire.Granted, 8}, {wire.Granted, 7}, {wire.Granted, 7}, {wire.Granted, 7}, {silent, 0}}, 8, false},
		{[]answer{{wire.Granted, 7}, {wire.Granted, 8}, {wire.Granted, 8}, {wire.Granted, 8}, {wire.Granted, 7}}, 8, true},
		{[]answer{{wire.Granted, 7}, {wire.Granted, 7}, {wire.Granted, 7}, {wire.Quarantined, 9}, {wire.Unfit, 9}}, 7, true},
		{[]answer{{wire.Granted, 7}, {wire.Granted, 7}, {wire.Quarantined, 7}, {wire.Granted, 6}, {wire.Held, 0}}, 7, false},
		{[]answer{{wire.Granted, 7}, {wire.Granted, 7}, {wire.Granted, 7}, {silent, 9}, {silent, 9}}, 7, true},
	} {
		r := &round{reqs: make([]lane.Request, 5), replied: make([]bool, 5), ballot: ballot{n: 5, need: 3}}
		for i, a := range tt.answers {
			r.reqs[i].Reply = wire.Reply{Status: a.outcome, Fence: a.number}
			if r.replied[i] = a.outcome != silent; !r.replied[i] {
				r.reqs[i].Reply.Status = wire.Granted // what is written there is not finished
			}
		}
		if number, stored := r.fence(); number != tt.number || stored != tt.stored {
			t.Errorf("%v: %d, stored %v; want %d, %v", tt.answers, number, stored, tt.number, tt.stored)
		}
	}
}

// TestLockIsValidFromBeforeItWasAskedFor: validity counts from before the first byte, less the drift; the lock has
// its name, a token, and its key under the prefix.
func TestLockIsValidFromBeforeItWasAskedFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(5)
		lk := ms.locker(t, &Options{Prefix: "app:"})
		sent := time.Now()
		for _, m := range ms {
			m.slow(20 * time.Millisecond)
		}
		l := acquired(t, lk, "a")
		if l.Name() != "a" || l.Token() == "" {
			t.Errorf("name %q, token %q", l.Name(), l.Token())
		}
		if want := sent.Add(10*time.Second - 102*time.Millisecond); !l.Until().Equal(want) {
			t.Errorf("valid until %v after the first byte was sent, want %v", l.Until().Sub(sent), want.Sub(sent))
		}
		if n := ms.held("app:a", l.Token()); n != 5 {
			t.Errorf("held on %d nodes", n)
		}
		var log strings.Builder
		slog.New(slog.NewTextHandler(&log, nil)).Info("held", "lock", l)
		if !strings.Contains(log.String(), "lock.name=a lock.fence=946684800000000 lock.left_ms=9900") {
			t.Errorf("logged as %s", log.String())
		}
		ctx := l.Context(t.Context())
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if cause := context.Cause(ctx); cause == nil || errors.Is(cause, ErrLost) {
			t.Errorf("released: the cause is %v", cause)
		}
		if err := l.Extend(t.Context()); err == nil {
			t.Error("extended after release")
		}
	})
}

// TestEachAttemptHasATokenOfItsOwn: each attempt of one wait has a token of its own (B1).
func TestEachAttemptHasATokenOfItsOwn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(3)
		tokens := make(map[string]bool)
		ms[2].spy = func(c *arena.Call) { tokens[c.Token] = true }
		lk := ms.locker(t, nil)
		ms[0].put("a", "rival", time.Second)
		ms[1].put("a", "rival", time.Second)
		l, err := lk.Acquire(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		acquires := 0
		for _, did := range ms[2].seen {
			if did == "acquire a" {
				acquires++
			}
		}
		if acquires < 3 || len(tokens) != acquires {
			t.Errorf("%d acquires with %d tokens", acquires, len(tokens))
		}
		l.Release(t.Context())
	})
}

// TestLockWonAfterItsCallHasEndedIsReleased: a lock that was won after its call has ended is released.
func TestLockWonAfterItsCallHasEndedIsReleased(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(3)
		lk := ms.locker(t, &Options{Quorum: 3})
		for i := range 100 {
			ctx, cancel := context.WithCancel(t.Context())
			ms[2].spy = func(*arena.Call) { cancel() }
			l, err := lk.TryAcquire(ctx, fmt.Sprint(i))
			if l != nil || !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), fmt.Sprintf("acquire %q", fmt.Sprint(i))) {
				t.Fatalf("lock %v, %v", l, err)
			}
			synctest.Wait()
			if left := ms.left(); len(left) > 0 {
				t.Fatalf("left on the nodes: %v", left)
			}
		}
	})
}

// pausing is a clock that can be set forward: a process that was not running.
type pausing struct{ skipped atomic.Int64 }

func (p *pausing) Now() time.Time { return time.Now().Add(time.Duration(p.skipped.Load())) }

// TestLockThatTookItsWholeLifeIsNotHandedOut: a lock that took its whole life to acquire is not
// handed out (B5).
func TestLockThatTookItsWholeLifeIsNotHandedOut(t *testing.T) {
	for _, tt := range []struct {
		pause time.Duration
		want  error
	}{{9895 * time.Millisecond, nil}, {9896 * time.Millisecond, ErrNoQuorum}, {time.Minute, ErrNoQuorum}} {
		t.Run(tt.pause.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				ms := newModels(3)
				clock := new(pausing)
				ms[2].slow(time.Millisecond)
				ms[2].spy = func(*arena.Call) { clock.skipped.Store(int64(tt.pause)) }
				lk := ms.locker(t, &Options{Clock: clock, Quorum: 3})
				l, err := lk.TryAcquire(t.Context(), "a")
				if tt.want == nil {
					if err != nil {
						t.Fatal(err)
					}
					return
				}
				if q := wantQuorumError(t, err, tt.want); l != nil || q.Granted < 3 {
					t.Errorf("%v, lock %v", err, l)
				}
				pass(time.Second)
				ms.empty(t)
			})
		})
	}
}

// TestManyTryAtOnce: of clients that try in the same instant, and are each near to another node, exactly one gets
// the lock, in time, and the others leave nothing. Also if a node is down, and among clients of another library,
// which never have it at the same time.
func TestManyTryAtOnce(t *testing.T) {
	const ms = time.Millisecond
	for row, tt := range []struct{ nodes, down, foreign int }{
		{1, 0, 0}, {2, 0, 0}, {3, 0, 0}, {3, 1, 0}, {3, 0, 3}, {4, 0, 0}, {4, 1, 0}, {5, 0, 0}, {5, 2, 0}, {5, 0, 3},
	} {
		for column, delay := range []time.Duration{0, ms, 20 * ms, 60 * ms} {
			if !need.Sample(row+column, 4) {
				continue
			}
			t.Run(fmt.Sprintf("%d nodes, %d down, %v away, %d of another library", tt.nodes, tt.down, delay, tt.foreign), func(t *testing.T) {
				bubble(t, func(t *testing.T) { manyTry(t, tt.nodes, tt.down, tt.foreign, delay) })
			})
		}
	}
}

func manyTry(t *testing.T, nodes, down, foreign int, delay time.Duration) {
	const clients, rounds = 8, 25
	ms := newModels(nodes)
	jitter := max(delay/20, 100*time.Microsecond)
	for i, m := range ms {
		if m.Delay(0, jitter); i < down {
			m.kill()
		}
	}
	away := func(c int, m *model) time.Duration {
		if slices.Index(ms, m) == c%nodes {
			return delay / 20
		}
		return delay
	}
	timeout := max(500*time.Millisecond, 9*2*(delay+jitter)) // with six round trips nobody has the lock in one round of a hundred, with seven in one of a thousand
	var lks []*Locker
	for c := range clients {
		lks = append(lks, ms.over(t, &Options{NodeTimeout: timeout}, func(conn *modelConn) { conn.host.Far(conn.model.Name, away(c, conn.model)) }))
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
				if took := time.Since(begin); took > timeout {
					t.Errorf("client %d took %v", c, took)
				}
				if err == nil {
					has()
					if err := l.Release(t.Context()); err != nil {
						t.Errorf("client %d releases: %v", c, err)
					}
				} else if !errors.Is(err, ErrHeld) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errNeedsScript) {
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
						votes <- m.SetNX(name, token, 10*time.Second)
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
					if m.holder(name) == token {
						m.Delete(name)
					}
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

// TestTryEndsSoonAgainstAHolder: a try against a client that has the lock ends after a round trip or two, or soon after the middle of its
// NodeTimeout where so many of the holder's nodes are down that nobody is seen to have a quorum. It leaves nothing.
func TestTryEndsSoonAgainstAHolder(t *testing.T) {
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
				lk := ms.over(t, nil, func(conn *modelConn) { conn.host.Far(conn.model.Name, 10*time.Millisecond) })
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

// TestTryEndsSoonBehindReaders: a try ends soon where clients that came before hold the lock together, although the nodes name
// different ones of them. If they have just released it, and are there no more when the try asks again, it gets the lock.
func TestTryEndsSoonBehindReaders(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		nodes, readers int
		gone           bool
	}{
		{4, 2, false}, {4, 2, true},
		{5, 5, false}, {5, 5, false}, {5, 5, false}, {5, 5, false}, // which nodes answer first is chance
		{5, 5, true},
	} {
		bubble(t, func(t *testing.T) {
			nodes := newModels(tt.nodes)
			lk := nodes.over(t, nil, func(conn *modelConn) { conn.host.Far(conn.model.Name, ms) })
			for i, m := range nodes {
				m.put("a", wire.Sign(fmt.Sprint("reader", i%tt.readers), time.Now(), "", "", ""), 10*time.Second)
			}
			pass(time.Second)
			if tt.gone {
				time.AfterFunc(3*ms, func() {
					for _, m := range nodes {
						m.forget()
					}
				})
			}
			begin := time.Now()
			_, err := lk.TryAcquire(t.Context(), "a")
			if took := time.Since(begin); took > 20*ms || !tt.gone && !errors.Is(err, ErrHeld) || tt.gone && err != nil {
				t.Errorf("%+v: after %v: %v", tt, took, err)
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
		others func(nodes models, now time.Time)
		until  time.Duration // they go
	}{
		"first attempts of clients that are far away": {func(nodes models, now time.Time) {
			for i, m := range nodes[:2] {
				m.put("a", wire.Sign(fmt.Sprint("far", i), now, "a", "", ""), time.Minute)
			}
		}, 150 * ms},
		"two attempts of a client that came later": {func(nodes models, now time.Time) {
			for i, m := range nodes[:2] {
				m.put("a", wire.Sign(contender(now.Add(time.Second).UnixMicro()).Secret(int64(i+1)), now, "a", "", ""), time.Minute)
			}
		}, 20 * ms},
		"places of a client that gave up for this one": {func(nodes models, now time.Time) {
			c := contender(now.Add(-ms).UnixMicro())
			for _, m := range nodes[:2] {
				m.put("a", "gone soon", time.Minute)
				conn := m.Dial(arena.NewHost(1, "c0"), time.Second)
				mark, err := conn.Connect(context.Background(), wire.Hello{Marked: true, Time: now.UnixMilli()})
				if err == nil {
					err = conn.Exec([]arena.Call{{
						Op: wire.Acquire, Keys: []string{"a"}, Modes: "x", Token: wire.Sign("other", now, "a", "", ""), Mark: mark.Value,
						TTL: time.Minute, Ticket: c.Ticket, Waiter: c.Waiter(), Lease: 500 * ms,
					}})
				}
				if m.Delete("a"); err != nil {
					t.Error(err)
				}
			}
		}, 20 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				nodes := newModels(3)
				lk := nodes.locker(t, nil)
				pass(time.Minute)
				tt.others(nodes, time.Now())
				time.AfterFunc(tt.until, func() {
					for _, m := range nodes[:2] {
						if s := wire.Secret(m.holder("a")); strings.HasPrefix(s, "far") || strings.Contains(s, "-other/") {
							m.Delete("a")
						}
						others := 0
						for _, e := range m.Waiters() {
							if strings.HasSuffix(e.Waiter, "-other.0") {
								others++
							}
						}
						if others > 0 {
							m.Delete("a" + script.QueueSuffix)
						}
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

// TestTryTakesANodeTimeoutAtMost: a try takes a NodeTimeout at the most, also with nodes that hang, and as the first call of a
// Locker; and one node that hangs does not keep it from the lock.
func TestTryTakesANodeTimeoutAtMost(t *testing.T) {
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

type serverError string

func (e serverError) Error() string { return string(e) }

func (serverError) RedisError() {}

// TestRefusalsThatLastEndAWait: a majority of nodes that refuse this client for good end a wait after some seconds, with the
// reason; all waiters of a Locker share the time. A minority does not, nor do nodes that may be back any moment.
func TestRefusalsThatLastEndAWait(t *testing.T) {
	for _, tt := range []struct {
		name  string
		err   error
		nodes int
		ends  bool
	}{
		{"a wrong password", serverError("WRONGPASS invalid username-password pair or user is disabled."), 2, true},
		{"no password", serverError("NOAUTH Authentication required."), 3, true},
		{"a missing right", serverError("NOPERM this user has no permissions to run the 'eval' command"), 2, true},
		{"a renamed command", serverError("ERR unknown command 'evalsha', with args beginning with: 'x'"), 2, true},
		{"an unknown CA", x509.UnknownAuthorityError{}, 2, true},
		{"an unknown name", &net.DNSError{Err: "no such host", Name: "a.invalid", IsNotFound: true}, 2, true},
		{"a wrong password at one node", serverError("WRONGPASS invalid username-password pair or user is disabled."), 1, false},
		{"it loads its data", serverError("LOADING Redis is loading the dataset in memory"), 3, false},
		{"it has too many clients", serverError("ERR max number of clients reached"), 3, false},
		{"it does not run", syscall.ECONNRESET, 3, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				ms := newModels(3)
				lk := ms.locker(t, nil)
				if !tt.ends { // a minority that refuses must not give the lock
					defer acquired(t, ms.locker(t, nil), "a", AutoRenew()).Release(t.Context())
				}
				pass(time.Second)
				refuse := func(err error) {
					for _, m := range ms[:tt.nodes] {
						m.Refuse(err)
					}
				}
				refuse(tt.err)
				var wg sync.WaitGroup
				ended := make(chan error, 3)
				begin := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				for range 3 { // in one local queue
					wg.Go(func() {
						_, err := lk.Acquire(ctx, "a")
						ended <- err
					})
				}
				if tt.ends {
					wg.Wait()
					if took := time.Since(begin); took < 5*time.Second || took > 7*time.Second {
						t.Errorf("it took %v", took)
					}
					if err := <-ended; !errors.Is(err, ErrNoQuorum) || !errors.Is(err, errRefused) || errors.Is(err, ErrHeld) {
						t.Error(err)
					}
					return
				}
				pass(20 * time.Second)
				select {
				case err := <-ended:
					t.Errorf("after %v: %v", time.Since(begin), err)
				default:
				}
				cancel()
				wg.Wait()
			})
		})
	}
}

// TestForbiddenName: a majority that refuses one name to this client ends a wait for it after as long, although the
// others, which answer first, say that it is held, and although the client gets other locks meanwhile.
func TestForbiddenName(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(3)
		lk := ms.locker(t, nil)
		ms[0].put("forbidden", "another's", time.Hour)
		for i, m := range ms[1:] {
			m.slow(time.Duration(10*i) * time.Millisecond)
			m.Refuse(serverError("NOPERM No permissions to access a key"), "forbidden")
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 20 {
				if err := acquired(t, lk, "allowed").Release(t.Context()); err != nil {
					t.Error(err)
				}
				time.Sleep(500 * time.Millisecond)
			}
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var wg sync.WaitGroup
		begin := time.Now()
		for range 3 {
			wg.Go(func() {
				_, err := lk.Acquire(ctx, "forbidden")
				if !errors.Is(err, errRefused) || !errors.Is(err, ErrNoQuorum) || errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), "node2: denied: NOPERM") {
					t.Error(err)
				}
				if took := time.Since(begin); took < 5*time.Second || took > 7*time.Second {
					t.Errorf("it took %v", took)
				}
			})
		}
		wg.Wait()
		<-done
		if len(lk.shut.of) > 0 {
			t.Errorf("it remembers %d names", len(lk.shut.of))
		}
	})
}

// TestRefusalsThatEndInTimeEndNoWait: a password that is wrong for less than the bound ends no wait, however often that happens.
func TestRefusalsThatEndInTimeEndNoWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(3)
		other, lk := ms.locker(t, nil), ms.locker(t, nil)
		l := acquired(t, other, "a", AutoRenew())
		ended := make(chan error, 1)
		go func() {
			l, err := lk.Acquire(t.Context(), "a")
			if err == nil {
				err = l.Release(t.Context())
			}
			ended <- err
		}()
		for range 4 {
			pass(10 * time.Second)
			for _, m := range ms {
				m.Refuse(serverError("WRONGPASS"))
			}
			pass(3 * time.Second)
			for _, m := range ms {
				m.Refuse(nil)
			}
		}
		pass(5 * time.Second)
		_ = l.Release(t.Context())
		if err := <-ended; err != nil && !strings.Contains(err.Error(), "lost") {
			t.Error(err)
		}
	})
}

// TestWaitBoundsTheWaitAlone: Wait ends the waiting and not the work, and its error is not a context's.
func TestWaitBoundsTheWaitAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, lk, _ := aFleet(t, 3, Options{TTL: 4 * time.Second})
		other, _ := f.open(Options{})
		held := acquired(t, other, "a", AutoRenew())
		for _, wait := range []time.Duration{0, 3 * time.Second, time.Minute} {
			began := time.Now()
			_, err := lk.Acquire(t.Context(), "a", Wait(wait))
			wantQuorumError(t, err, ErrHeld)
			if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
				t.Errorf("Wait(%v): the error is a context's: %v", wait, err)
			}
			if got := time.Since(began); got < wait || got > wait+lk.settings().NodeTimeout {
				t.Errorf("Wait(%v) took %v", wait, got)
			}
		}
		if waits := inspected(t, lk, "a").Waiting; len(waits) > 0 {
			t.Errorf("left in the queues: %v", waits)
		}

		time.AfterFunc(time.Second, func() { _ = held.Release(context.Background()) })
		err := lk.Do(t.Context(), "a", func(ctx context.Context, _ *Lock) error {
			time.Sleep(10 * time.Second) // for longer than Wait
			return context.Cause(ctx)
		}, Wait(2*time.Second))
		if err != nil {
			t.Errorf("the work was ended with the wait: %v", err)
		}

		for _, n := range f.nodes {
			n.Kill()
		}
		_, err = lk.Acquire(t.Context(), "a", Wait(3*time.Second))
		wantQuorumError(t, err, ErrNoQuorum)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err = lk.Acquire(ctx, "a", Wait(time.Minute)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the caller's own deadline came first, and the error is %v", err)
		}
		if _, err = lk.Acquire(t.Context(), "a", Wait(-1)); err == nil || !strings.Contains(err.Error(), "Wait -1ns") {
			t.Errorf("Wait(-1): %v", err)
		}
	})
}
