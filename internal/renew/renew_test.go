package renew_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/internal/renew"
	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
)

func TestMain(m *testing.M) { os.Exit(leaks.Main(m)) }

const (
	ttl     = 3 * time.Second
	timeout = 200 * time.Millisecond
	soon    = 10 * time.Millisecond
	look    = time.Second
)

var (
	errShut    = errors.New("shut")
	errExpired = errors.New("expired")
	errGone    = errors.New("the lock has ended")
)

// A bench is a Scheduler in a bubble, and what its items record: when, counted from the start, what happened to which.
type bench struct {
	*testing.T
	*renew.Scheduler
	start time.Time

	mu     sync.Mutex
	events []string
}

// bubble runs f with a Scheduler. The items that are left are shut at its end.
func bubble(t *testing.T, f func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		leaks.Check(t)
		b := &bench{T: t, start: time.Now()}
		b.Scheduler = renew.New(renew.Config{Now: time.Now, Left: time.Until, Host: sim.Chance{}, Soon: soon, Look: look})
		defer b.Close()
		f(b)
	})
}

func (b *bench) note(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = append(b.events, fmt.Sprintf("%v ", time.Since(b.start))+fmt.Sprintf(format, args...))
}

// want compares the events since the last want.
func (b *bench) want(want ...string) {
	b.Helper()
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Equal(b.events, want) {
		b.Errorf("got\n%q\nwant\n%q", b.events, want)
	}
	b.events = nil
}

// An item is a lock of which the test says what becomes of its renewals.
type item struct {
	*bench
	renew.Entry
	name string

	// Under the bench's mutex, since the Scheduler's goroutine looks at them, too:
	until time.Time
	spent bool
	end   error        // why it ended; nil: it has not
	now   *renewal     // the renewal that was made last
	begin func() error // what Begin of a renewal does; nil: it sends, and no vote comes
}

func (b *bench) item(name string) *item {
	i := &item{bench: b, name: name, until: time.Now().Add(time.Hour)}
	i.Entry = renew.NewEntry(i)
	if !b.Add(&i.Entry) {
		b.Fatal("the Scheduler is closed")
	}
	return i
}

// set changes what the item says to the Scheduler.
func (i *item) set(f func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	f()
}

// confirm settles each renewal as soon as it is sent, as a quorum that answers at once does.
func (i *item) confirm() {
	i.set(func() { i.begin = func() error { i.Settle(&i.Entry, i.last()); return nil } })
}

// last is the renewal that was made last; nil: none was.
func (i *item) last() *renewal {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.now
}

// ended is why it ended; nil: it has not.
func (i *item) ended() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.end
}

func (i *item) Token() string          { return i.name }
func (i *item) TTL() time.Duration     { return ttl }
func (i *item) Timeout() time.Duration { return timeout }

func (i *item) Until() time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.until
}

func (i *item) Spent() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.spent
}

func (i *item) Expire() {
	i.set(func() { i.end = errExpired })
	i.note("%s expires", i.name)
	i.Remove(&i.Entry)
}

func (i *item) Shut() {
	i.set(func() { i.end = errShut })
	i.note("%s is shut", i.name)
}

func (i *item) Renew() renew.Renewal {
	r := &renewal{item: i}
	i.set(func() { i.now = r })
	return r
}

func (i *item) Renewed(r renew.Result) {
	if r.Err != nil {
		i.note("%s fails: %v", i.name, r.Err)
		return
	}
	i.note("%s is renewed", i.name)
}

// A renewal counts how often it is finished: it must be once.
type renewal struct {
	*item
	sent     time.Time
	stopped  bool
	finished int
}

func (r *renewal) Begin() error {
	var begin func() error
	r.set(func() { r.sent, begin = time.Now(), r.begin })
	if begin == nil {
		return nil
	}
	return begin()
}

func (r *renewal) Stop() { r.stopped = true }

func (r *renewal) finish() {
	if r.finished++; r.finished > 1 {
		r.Errorf("a renewal of %s was finished %d times", r.name, r.finished)
	}
}

func (r *renewal) End() renew.Result {
	r.finish()
	if r.stopped {
		return renew.Result{Err: errors.New("no quorum"), Sent: r.sent}
	}
	return renew.Result{Sent: r.sent}
}

func (r *renewal) Abandon(err error) renew.Result {
	r.finish()
	return renew.Result{Err: err, Sent: r.sent}
}

func (r *renewal) Drop() { r.finish() }

// TestRenewedAfterEachThirdOfTheTTL: counted from when the last renewal was sent, and no more once nobody keeps the item.
func TestRenewedAfterEachThirdOfTheTTL(t *testing.T) {
	bubble(t, func(b *bench) {
		a := b.item("a")
		a.confirm()
		b.Keep(&a.Entry, b.start.Add(ttl/3))
		time.Sleep(ttl)
		b.want("1s a is renewed", "2s a is renewed", "3s a is renewed")
		b.Unkeep(&a.Entry)
		time.Sleep(ttl)
		b.want()
	})
}

// TestKeptByTwoUntilBothLetGo: each Keep needs its Unkeep.
func TestKeptByTwoUntilBothLetGo(t *testing.T) {
	bubble(t, func(b *bench) {
		a := b.item("a")
		a.confirm()
		b.Keep(&a.Entry, b.start.Add(ttl/3))
		b.Keep(&a.Entry, b.start.Add(ttl/2))
		b.Unkeep(&a.Entry)
		time.Sleep(ttl / 3)
		b.want("1s a is renewed")
		b.Unkeep(&a.Entry)
		time.Sleep(ttl)
		b.want()
	})
}

// TestGivenUpAfterItsTimeout: a renewal that no quorum confirms in time fails, and is tried again after a twentieth of the TTL.
func TestGivenUpAfterItsTimeout(t *testing.T) {
	bubble(t, func(b *bench) {
		a := b.item("a")
		b.Keep(&a.Entry, b.start.Add(time.Second))
		time.Sleep(1600 * time.Millisecond)
		b.want("1.2s a fails: no quorum", "1.55s a fails: no quorum")
		b.Settle(&a.Entry, a.last()) // the vote that would have decided the one that was given up
		b.want()
		a.confirm()
		time.Sleep(200 * time.Millisecond)
		b.want("1.7s a is renewed")
	})
}

// TestBusyItemIsTriedAgain: while the holder extends the lock itself, nothing is reported, and a twentieth of the TTL later
// the renewal is tried again.
func TestBusyItemIsTriedAgain(t *testing.T) {
	bubble(t, func(b *bench) {
		a := b.item("a")
		a.set(func() { a.begin = func() error { a.confirm(); return renew.ErrBusy } })
		b.Keep(&a.Entry, b.start.Add(time.Second))
		time.Sleep(1500 * time.Millisecond)
		b.want("1.15s a is renewed")
	})
}

// TestEndedItemIsAbandoned: a renewal that cannot begin, since the lock has ended, is reported with the reason.
func TestEndedItemIsAbandoned(t *testing.T) {
	bubble(t, func(b *bench) {
		a := b.item("a")
		a.set(func() { a.begin = func() error { b.Remove(&a.Entry); return errGone } })
		b.Keep(&a.Entry, b.start.Add(time.Second))
		time.Sleep(time.Minute)
		b.want("1s a fails: the lock has ended")
	})
}

// TestSpentItemIsRenewedNoMore: when a renewal would gain nothing, as at the end of MaxHold, none begins.
func TestSpentItemIsRenewedNoMore(t *testing.T) {
	bubble(t, func(b *bench) {
		a := b.item("a")
		a.confirm()
		b.Keep(&a.Entry, b.start.Add(time.Second))
		time.Sleep(1500 * time.Millisecond)
		b.want("1s a is renewed")
		a.set(func() { a.spent = true })
		time.Sleep(time.Second)
		b.want("2s a is renewed") // it was due already
		time.Sleep(time.Minute)
		b.want()
	})
}

// TestDueSoonBeginsTogether: an item that is due within Soon begins with one that is due now, and a later one does not.
func TestDueSoonBeginsTogether(t *testing.T) {
	bubble(t, func(b *bench) {
		for name, at := range map[string]time.Duration{"now": 0, "soon": soon, "later": soon + time.Millisecond} {
			i := b.item(name)
			i.confirm()
			b.Keep(&i.Entry, b.start.Add(time.Second+at))
		}
		time.Sleep(1500 * time.Millisecond)
		b.want("1s now is renewed", "1s soon is renewed", "1.011s later is renewed")
	})
}

// TestUnderWayIsBounded: of many items that are due at once, MaxUnderWay begin; each of the others begins when one is finished.
func TestUnderWayIsBounded(t *testing.T) {
	bubble(t, func(b *bench) {
		var all []*item
		for n := range renew.MaxUnderWay + 2 {
			i := b.item(fmt.Sprint(n))
			b.Keep(&i.Entry, b.start)
			all = append(all, i)
		}
		begun := func() (flying []*item) {
			synctest.Wait()
			for _, i := range all {
				if i.last() != nil {
					flying = append(flying, i)
				}
			}
			return flying
		}
		first := begun()
		if len(first) != renew.MaxUnderWay {
			t.Fatalf("%d renewals are under way, want %d", len(first), renew.MaxUnderWay)
		}
		b.Settle(&first[0].Entry, first[0].last())
		if n := len(begun()); n != renew.MaxUnderWay+1 {
			t.Errorf("%d have begun after one was finished, want one more", n)
		}
	})
}

// TestOverdueItemsExpire: an item whose validity is over ends at the next look, though its own timer did not go off, and one
// that is still valid stays.
func TestOverdueItemsExpire(t *testing.T) {
	bubble(t, func(b *bench) {
		a, valid := b.item("a"), b.item("valid")
		a.set(func() { a.until = b.start.Add(1500 * time.Millisecond) })
		time.Sleep(5 * time.Second)
		b.want("2s a expires")
		if valid.ended() != nil {
			t.Errorf("the valid one has ended: %v", valid.ended())
		}
		if n, looks := b.Len(); n != 1 || !looks {
			t.Errorf("%d items, looks %v", n, looks)
		}
		b.Remove(&valid.Entry)
		time.Sleep(2 * look)
		if n, looks := b.Len(); n != 0 || looks {
			t.Errorf("with nothing to look at: %d items, looks %v", n, looks)
		}
	})
}

// TestCloseShutsEveryItem: also those that are only watched. A renewal under way is finished, and nothing can be added any more.
func TestCloseShutsEveryItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leaks.Check(t)
		b := &bench{T: t, start: time.Now()}
		b.Scheduler = renew.New(renew.Config{Now: time.Now, Left: time.Until, Host: sim.Chance{}, Soon: soon, Look: look})
		watched, renewed := b.item("watched"), b.item("renewed")
		b.Keep(&renewed.Entry, b.start)
		synctest.Wait()
		b.Close()
		if watched.ended() != errShut || renewed.ended() != errShut || renewed.last().finished != 1 {
			t.Errorf("ended by %v and %v, the renewal finished %d times", watched.ended(), renewed.ended(), renewed.last().finished)
		}
		if late := (renew.NewEntry(watched)); b.Add(&late) {
			t.Error("an item was added after Close")
		}
	})
}

// A stalling clock is the bubble's, and more by what the process stood still.
type stalling struct {
	mu    sync.Mutex
	ahead time.Duration
}

func (s *stalling) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(s.ahead)
}

// TestStalledTellsWhenTheProcessStoodStill: Stalled gives the length of a standstill for an instant in it, and 0 for others,
// also before the Scheduler has looked again.
func TestStalledTellsWhenTheProcessStoodStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := new(stalling)
		b := &bench{T: t, start: time.Now()}
		b.Scheduler = renew.New(renew.Config{
			Now: clock.now, Left: func(at time.Time) time.Duration { return at.Sub(clock.now()) }, Host: sim.Chance{}, Soon: soon, Look: look,
		})
		defer b.Close()
		b.item("a")
		time.Sleep(500 * time.Millisecond)
		before := clock.now()
		if d := b.Stalled(before, clock.now()); d != 0 {
			t.Errorf("before: %v", d)
		}
		clock.mu.Lock()
		clock.ahead = time.Minute
		clock.mu.Unlock()
		in := before.Add(30 * time.Second)
		for _, when := range []string{"before the look", "after it"} {
			if d := b.Stalled(in, clock.now()); d < time.Minute || d > time.Minute+2*look {
				t.Errorf("%s it stood still for %v, want a minute", when, d)
			}
			time.Sleep(2 * look)
		}
		if d := b.Stalled(clock.now(), clock.now()); d != 0 {
			t.Errorf("it runs again, and stands still for %v", d)
		}
	})
}
