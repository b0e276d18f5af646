// Package renew has a scheduler that extends locks when they are due (a renewal), and ends the locks whose validity was
// over while their timers stood still. All that it knows about a lock is an Item, and about the extension a Renewal.
package renew

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/quorumlock/redlock/internal/sim"
)

// An Item is a lock that a Scheduler renews or watches.
type Item interface {
	Token() string
	TTL() time.Duration
	Until() time.Time       // the end of validity
	Timeout() time.Duration // after which a renewal without a result has failed; called under Scheduler.mu
	Spent() bool            // a renewal would gain nothing: no other one begins

	Expire() // ends the lock: its validity is over
	Shut()   // ends the lock: the Scheduler is closed and renews it no more

	Renew() Renewal // makes a renewal, and sends nothing yet; called under Scheduler.mu
	Renewed(Result) // reports the result of a renewal to hooks
}

// A Renewal is one extension of an item. The Scheduler finishes it with exactly one call of End, Abandon or Drop.
type Renewal interface {
	// Begin sends the requests. It sends none if it returns an error: ErrBusy if the holder extends the lock itself at
	// this moment, otherwise the reason why the lock has ended.
	Begin() error

	Stop()                // no more votes count
	End() Result          // returns the result of the votes
	Abandon(error) Result // ends a renewal that could not begin
	Drop()                // ends a renewal that got ErrBusy
}

// ErrBusy is the error of a renewal while the holder extends the lock itself.
var ErrBusy = errors.New("the holder extends the lock")

// A Result is the result of a renewal.
type Result struct {
	Err  error     // why the lock was not extended; nil: it was
	Sent time.Time // when its requests left
	Op   any       // identifies the operation to hooks
}

// A Config says how a Scheduler works. All fields are set.
type Config struct {
	Now  func() time.Time
	Left func(until time.Time) time.Duration // the time until then, by the clock on which less is left
	Host sim.Host

	// Soon is by how much a renewal may begin early, together with one that is due now: that fills pipelines.
	Soon time.Duration

	// Look is how often the Scheduler looks at all items. Timers stand still while a host is suspended, and then go on
	// with what was left of their time; a look notices the end of a validity meanwhile.
	Look time.Duration
}

// MaxUnderWay bounds the renewals under way at once: ten thousand locks that are due together cost one pipeline after
// another, and not the memory of ten thousand rounds.
const MaxUnderWay = 256

// A Scheduler keeps locks alive: one goroutine and two heaps for all items. The goroutine begins a renewal when it is
// due, and gives up on it when no quorum has confirmed it in time. Else the goroutine that delivers the deciding vote
// finishes it (Settle).
type Scheduler struct {
	cfg   Config
	wake  chan struct{}
	stop  chan struct{}
	ended chan struct{}

	mu       sync.Mutex          // protects what follows, and each Entry
	due      schedule            // items whose next renewal has not begun
	underWay schedule            // items with a renewal that has
	live     map[*Entry]struct{} // all items that are watched or renewed; nil: the Scheduler is closed
	looked   time.Time           // when the goroutine last looked at live; zero: live is empty, so it does not look
	stalled  [2]time.Time        // the begin and the end of the last time in which a look was due and none was made
}

// An Entry is an item's part in a Scheduler.
type Entry struct {
	item    Item      // never changes: so End and Renewed need no mutex
	users   int       // calls of Keep that no Unkeep has undone
	at      time.Time // in due: when to begin; in underWay: when to give up
	in      *schedule // the heap that has it; nil: none
	index   int       // its place in that heap
	renewal Renewal   // nil: none is under way
}

// NewEntry returns an Entry for an item; Add gives it to a Scheduler.
func NewEntry(item Item) Entry { return Entry{item: item} }

// New returns a Scheduler, whose goroutine runs until Close.
func New(cfg Config) *Scheduler {
	s := &Scheduler{
		cfg: cfg, live: make(map[*Entry]struct{}),
		wake: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{}),
	}
	go s.run()
	return s
}

// Add makes the Scheduler watch an item: it ends the item at Close, or when validity is over and the item's own timer has
// not ended it (Item.Expire). False: the Scheduler is closed, and the caller must end the item.
func (s *Scheduler) Add(e *Entry) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live == nil {
		return false
	}
	s.live[e] = struct{}{}
	if s.looked.IsZero() {
		s.looked = s.cfg.Now()
		s.nudge()
	}
	return true
}

// Remove forgets an item that has ended: no further renewal of it begins. One that is under way goes on to its end.
func (s *Scheduler) Remove(e *Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.live, e)
	if e.in == &s.due {
		s.move(e, nil, time.Time{})
	}
}

// Keep makes the Scheduler renew an item, for the first time at the instant at, unless a renewal is due or under way
// already. It does nothing for an item that was removed. Each Keep is undone by one Unkeep.
func (s *Scheduler) Keep(e *Entry, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.live[e]; !ok {
		return // it has ended
	}
	e.users++
	if e.in == nil {
		s.move(e, &s.due, at)
	}
}

// Unkeep undoes one Keep. After the last one, no further renewal of the item begins.
func (s *Scheduler) Unkeep(e *Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.users--
	if e.users == 0 && e.in == &s.due {
		s.move(e, nil, time.Time{})
	}
}

// Len returns the sum of the lengths of live, due and underWay, and whether the goroutine looks at items; for tests.
func (s *Scheduler) Len() (items int, looks bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.live) + len(s.due) + len(s.underWay), !s.looked.IsZero()
}

// move puts an entry into another heap (nil: into none), with at as its time there. Caller holds s.mu.
func (s *Scheduler) move(e *Entry, to *schedule, at time.Time) {
	if e.in != nil {
		e.in.remove(e)
	}
	e.in, e.at = to, at
	if to == nil {
		return
	}
	to.add(e)
	if to == &s.due && e.index == 0 {
		s.nudge()
	}
}

func (s *Scheduler) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *Scheduler) run() {
	defer close(s.ended)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for n := 0; ; n++ {
		select {
		case <-s.stop:
		case <-s.wake:
		case <-timer.C:
		}
		s.cfg.Host.Woke(sim.Renewals, "", n)
		select {
		case <-s.stop:
			return
		default:
			timer.Reset(s.turn())
		}
	}
}

// turn begins the renewals that are due, gives up on those that have timed out, and returns how long run may sleep
// until the next turn. Only run calls it.
func (s *Scheduler) turn() time.Duration {
	type flight struct {
		entry   *Entry
		renewal Renewal
	}
	var begin, overdue []flight
	now := s.cfg.Now()
	s.check(now)
	soon := now.Add(s.cfg.Soon)
	s.mu.Lock()
	for len(s.underWay) > 0 && !s.underWay[0].at.After(now) {
		e := s.underWay[0]
		overdue = append(overdue, flight{e, e.renewal})
		e.renewal = nil
		s.move(e, nil, now)
	}
	for len(s.due) > 0 && !s.due[0].at.After(soon) && len(s.underWay) < MaxUnderWay {
		e := s.due[0]
		e.renewal = e.item.Renew()
		s.move(e, &s.underWay, now.Add(e.item.Timeout()))
		begin = append(begin, flight{e, e.renewal})
	}
	s.mu.Unlock()
	for _, f := range overdue {
		f.renewal.Stop()
		s.finish(f.entry, f.renewal)
	}
	for _, f := range begin {
		s.begin(f.entry, f.renewal)
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	next := now.Add(time.Hour)
	if len(s.underWay) > 0 {
		next = s.underWay[0].at
	}
	if len(s.due) > 0 && len(s.underWay) < MaxUnderWay && s.due[0].at.Before(next) {
		next = s.due[0].at
	}
	if look := s.looked.Add(s.cfg.Look); !s.looked.IsZero() && look.Before(next) {
		next = look
	}
	return s.cfg.Left(next)
}

// check looks at all items, if Config.Look has passed since the last time, and ends those whose validity is over
// although their timers have not run. Caller does not hold s.mu.
func (s *Scheduler) check(now time.Time) {
	s.mu.Lock()
	if s.looked.IsZero() || span(s.looked, now) < s.cfg.Look {
		s.mu.Unlock()
		return
	}
	if s.late(s.looked, now) {
		s.stalled = [2]time.Time{s.looked, now}
	}
	if s.looked = now; len(s.live) == 0 {
		s.looked = time.Time{}
	}
	live := make([]Item, 0, len(s.live))
	for e := range maps.Keys(s.live) {
		live = append(live, e.item)
	}
	s.mu.Unlock()
	live = slices.DeleteFunc(live, func(i Item) bool { return s.cfg.Left(i.Until()) > 0 })
	slices.SortFunc(live, func(a, b Item) int { return cmp.Compare(a.Token(), b.Token()) }) // in an order that a simulation can repeat
	for _, i := range live {
		i.Expire()
	}
}

// late reports whether two looks are so far apart that this process, or its machine, must have stood still in between.
func (s *Scheduler) late(from, to time.Time) bool { return span(from, to) > 2*s.cfg.Look }

// span returns the time between two instants, by the clock on which it is longer, monotonic or wall: on Linux, the
// monotonic clock stands still in a suspended host.
func span(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}

// Stalled returns how long this process stood still (suspended, say) when it did so at the instant at; 0: it ran then.
// It remembers only the last stop. now is the time of the call: it shows a stop that check has not noticed yet.
func (s *Scheduler) Stalled(at, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	from, to := s.stalled[0], s.stalled[1]
	if !s.looked.IsZero() && s.late(s.looked, now) {
		from, to = s.looked, now
	}
	if from.IsZero() || span(at, from) >= 0 || span(at, to) < 0 {
		return 0
	}
	return span(from, to)
}

// begin sends the requests of a renewal. If the holder extends the lock itself at this moment, the renewal is dropped and
// tried again after TTL/20; if the lock has ended, it fails for the reason of that, and none follows.
func (s *Scheduler) begin(e *Entry, r Renewal) {
	switch err := r.Begin(); {
	case err == nil:
	case !s.claim(e, r):
	case errors.Is(err, ErrBusy):
		// The holder's extension may fail: so try this renewal again.
		r.Drop()
		s.again(e, s.cfg.Now().Add(e.item.TTL()/20))
	default:
		e.item.Renewed(r.Abandon(err))
	}
}

// claim reports whether the caller must finish the renewal r, and removes r from its entry if so. Either the deciding
// vote or the timeout finishes it. When the second of the two comes, the entry may have another renewal.
func (s *Scheduler) claim(e *Entry, r Renewal) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.renewal != r {
		return false
	}
	e.renewal = nil
	s.move(e, nil, time.Time{})
	return true
}

// Settle finishes a renewal, unless it is finished already. The goroutine that delivers the deciding vote calls it.
func (s *Scheduler) Settle(e *Entry, r Renewal) {
	if s.claim(e, r) {
		s.finish(e, r)
	}
}

// finish ends a renewal, reports its result, and schedules the next one: TTL/3 after this one was sent, or, if it
// failed, TTL/20 from now. Caller has removed r from its entry.
func (s *Scheduler) finish(e *Entry, r Renewal) {
	res := r.End()
	next := res.Sent.Add(e.item.TTL() / 3)
	if res.Err != nil {
		// While validity lasts; but with a pause, since the lane of a node that is down refuses at once.
		next = s.cfg.Now().Add(e.item.TTL() / 20)
	}
	s.again(e, next)
	e.item.Renewed(res)
}

// again schedules the next renewal of an item for the instant at, unless the item has ended, or no Keep is in force.
func (s *Scheduler) again(e *Entry, at time.Time) {
	spent := e.item.Spent()
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.live[e]; ok && !spent && e.users > 0 && e.in == nil {
		s.move(e, &s.due, at)
	}
	if len(s.due) > 0 && len(s.underWay) == MaxUnderWay-1 {
		s.nudge() // turn had stopped at the bound
	}
}

// Close ends the goroutine, and every item, since nothing would notice any more that its validity is over. It waits for the
// goroutine. Renewals under way end, and are reported, with the votes that they have. Call it once.
func (s *Scheduler) Close() {
	close(s.stop)
	<-s.ended
	s.mu.Lock()
	live := s.live
	s.live = nil
	underWay := slices.Clone(s.underWay)
	s.mu.Unlock()
	for e := range live {
		e.item.Shut()
	}
	for _, e := range underWay { // the goroutine no longer gives up on these
		s.mu.Lock()
		r := e.renewal
		s.mu.Unlock()
		if r != nil && s.claim(e, r) { // unless a vote has decided it meanwhile
			r.Stop()
			s.finish(e, r)
		}
	}
}
