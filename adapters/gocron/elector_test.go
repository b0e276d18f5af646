package gocronredlock_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/quorumlock/redlock"
	gocronredlock "github.com/quorumlock/redlock/adapters/gocron"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
)

// TestElection: the leader runs all ticks. When it resigns, another one runs the next tick; when it dies, no
// scheduler runs one or two ticks. No tick has two runs.
func TestElection(t *testing.T) {
	inBubble(t, func(t *testing.T, nodes *redistest.Bubble) {
		var d diary
		var lockers []*redlock.Locker
		var electors []*gocronredlock.Elector
		for n := range 4 {
			lk := locker(t, nodes)
			e := gocronredlock.NewElector(lk, "leader")
			t.Cleanup(func() { _ = e.Close() })
			lockers, electors = append(lockers, lk), append(electors, e)
			schedule(t, 0, gocron.WithDistributedElector(e), every(), gocron.NewTask(func() { d.note(n) }))
		}
		leads := func() int {
			return slices.IndexFunc(electors, func(e *gocronredlock.Elector) bool { return e.IsLeader(t.Context()) == nil })
		}
		// terms: each is the leader for some ticks, and the next one after it takes over.
		var led []int
		for _, step := range []struct {
			end    func(leader int)
			missed int // at most, by the next leader
		}{
			{func(n int) { _ = electors[n].Close() }, 0}, // resigns
			{func(n int) { _ = lockers[n].Close() }, 2},  // dies
			{func(int) {}, 0},
		} {
			time.Sleep(interval / 4) // an election takes less
			begin := time.Now()
			time.Sleep(10 * interval)
			leader := leads()
			if leader < 0 || slices.Contains(led, leader) {
				t.Fatalf("%d leads after %v", leader, led)
			}
			missed := 0
			for _, who := range d.who(begin, 10) {
				switch {
				case len(who) == 0:
					missed++
				case len(who) > 1 || who[0] != leader:
					t.Errorf("%d leads, and a tick was run by %v", leader, who)
				}
			}
			if most := map[int]int{2: 2}[len(led)]; missed > most {
				t.Errorf("%d ticks were nobody's, at most %d are to be", missed, most)
			}
			led = append(led, leader)
			step.end(leader)
			if err := electors[leader].IsLeader(t.Context()); len(led) < 3 && !errors.Is(err, gocronredlock.ErrNotLeader) {
				t.Errorf("who has resigned, or died: IsLeader says %v", err)
			}
		}
		t.Logf("they led one after another: %v", led)
	})
}

// TestLeaderIsTold: without a quorum a leader is none any more before another can be, and
// so are its jobs told.
func TestLeaderIsTold(t *testing.T) {
	inBubble(t, func(t *testing.T, nodes *redistest.Bubble) {
		e := gocronredlock.NewElector(locker(t, nodes), "leader")
		defer e.Close()
		told := make(chan error, 100)
		schedule(t, 0, gocron.WithDistributedElector(e), every(),
			gocron.NewTask(e.Task(func(ctx context.Context, l *redlock.Lock) error {
				if l.Fence() == 0 {
					t.Error("no fence")
				}
				<-ctx.Done()
				told <- context.Cause(ctx)
				return nil
			})), gocron.WithSingletonMode(gocron.LimitModeReschedule))
		time.Sleep(interval)
		if err := e.IsLeader(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			nodes.Kill(i)
		}
		killed := time.Now()
		if err := <-told; !errors.Is(err, redlock.ErrLost) {
			t.Errorf("the job is told %v", err)
		}
		if took := time.Since(killed); took > 10*time.Second {
			t.Errorf("told after %v, when another could lead", took)
		}
		if err := e.IsLeader(t.Context()); !errors.Is(err, gocronredlock.ErrNotLeader) {
			t.Errorf("IsLeader: %v", err)
		}
		for i := range 3 {
			nodes.Restart(i, true)
		}
		time.Sleep(2 * interval) // their quarantine
		if err := e.IsLeader(t.Context()); err != nil {
			t.Errorf("when the nodes are back: %v", err)
		}
	})
}

// TestElectorSaysWhy: the answer has an error that waiting does not change.
func TestElectorSaysWhy(t *testing.T) {
	inBubble(t, func(t *testing.T, nodes *redistest.Bubble) {
		lk := locker(t, nodes)
		bad := gocronredlock.NewElector(lk, "leader", redlock.TTL(time.Hour))
		time.Sleep(time.Second)
		err := bad.IsLeader(t.Context())
		if !errors.Is(err, gocronredlock.ErrNotLeader) || err.Error() == gocronredlock.ErrNotLeader.Error() {
			t.Errorf("with a TTL that is not allowed: %v", err)
		}
		_ = bad.Close()

		_ = lk.Close()
		closed := gocronredlock.NewElector(lk, "leader")
		time.Sleep(time.Second)
		if err := closed.IsLeader(t.Context()); !errors.Is(err, redlock.ErrClosed) {
			t.Errorf("with a closed Locker: %v", err)
		}
		_ = closed.Close()
	})
}
