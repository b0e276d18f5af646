package redlock

import (
	"cmp"
	"container/heap"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/wire"
)

// KeepAlive renews the lock until ctx ends, and returns nil then; or until the
// lock has ended, and returns why, nil if it was released. It blocks, and is
// meant for a goroutine of the caller's; [AutoRenew] and [Locker.Do] need none.
func (l *Lock) KeepAlive(ctx context.Context) error {
	hold := cmp.Or(l.root, l)
	l.locker.renewals.keep(hold, false)
	defer l.locker.renewals.unkeep(hold)
	select {
	case <-ctx.Done():
		return nil
	case <-l.ended():
		if why := l.why(); why != errReleased && why != errDetached {
			return why
		}
		return nil
	}
}

// maxFlying bounds the renewals under way at once, so that ten thousand locks
// that are due together cost a pipeline after another and not ten thousand
// rounds' memory.
const maxFlying = 256

// renewals keeps locks alive: one goroutine and two heaps for all locks of a
// Locker. The goroutine begins a renewal when it is due and gives up on it when
// no quorum has confirmed it in time; a renewal that a quorum does decide is
// dealt with right where the deciding vote comes in.
type renewals struct {
	locker *Locker
	wake   chan struct{}
	stop   chan struct{}
	ended  chan struct{}

	mu     sync.Mutex
	due    schedule
	flying schedule
	live   map[*Lock]struct{} // everything that is watched or renewed
	looked time.Time          // at all of those; zero: nobody looks
}

// A renewal is a lock's part in it, guarded by renewals.mu.
type renewal struct {
	users int       // who wants it renewed
	once  bool      // one of them wants it extended once
	at    time.Time // due: when to begin; flying: when to give up
	in    *schedule // the one it is in, nil: none
	index int
	round *round // flying
}

func newRenewals(lk *Locker) *renewals {
	k := &renewals{
		locker: lk, live: make(map[*Lock]struct{}),
		wake: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{}),
	}
	go k.run()
	return k
}

// add has close end the lock; it reports false when close has been called.
func (k *renewals) add(l *Lock) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.live == nil {
		return false
	}
	k.live[l] = struct{}{}
	if k.looked.IsZero() {
		k.looked = k.locker.opts.Clock.Now()
		k.nudge()
	}
	return true
}

// remove forgets a lock that has ended.
func (k *renewals) remove(l *Lock) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.live, l)
	if l.renewal.in == &k.due {
		k.move(l, nil, time.Time{})
	}
}

// keep has a lock renewed; once: extended once, if it has not been by now.
func (k *renewals) keep(l *Lock, once bool) {
	l.mu.Lock()
	if l.cause != nil || once && l.confirmed > 0 {
		l.mu.Unlock()
		return
	}
	alive := l.watch()
	at := l.until.Add(l.locker.opts.drift(l.claim.TTL) - l.claim.TTL + l.claim.TTL/3) // a third after the last confirmed one was sent
	l.mu.Unlock()
	if !alive {
		l.end(errShut)
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, ok := k.live[l]; !ok {
		return // it ended in the meantime
	}
	l.renewal.users++
	l.renewal.once = l.renewal.once || once
	if l.renewal.in == nil {
		k.move(l, &k.due, at)
	}
}

func (k *renewals) unkeep(l *Lock) {
	k.mu.Lock()
	defer k.mu.Unlock()
	l.renewal.users--
	if l.renewal.users == 0 && l.renewal.in == &k.due {
		k.move(l, nil, time.Time{})
	}
}

// move puts a lock into another schedule, or none. Under the mutex.
func (k *renewals) move(l *Lock, to *schedule, at time.Time) {
	if from := l.renewal.in; from != nil {
		heap.Remove(from, l.renewal.index)
	}
	l.renewal.in, l.renewal.at = to, at
	if to == nil {
		return
	}
	heap.Push(to, l)
	if to == &k.due && l.renewal.index == 0 {
		k.nudge()
	}
}

func (k *renewals) nudge() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

func (k *renewals) run() {
	defer close(k.ended)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for n := 0; ; n++ {
		select {
		case <-k.stop:
			return
		case <-k.wake:
		case <-timer.C:
		}
		k.locker.opts.host.Woke(sim.Renewals, "", n)
		timer.Reset(k.turn())
	}
}

// turn begins what is due, gives up on what is overdue, and says when to look
// again.
func (k *renewals) turn() time.Duration {
	type flight struct {
		lock  *Lock
		round *round
	}
	var begin, overdue []flight
	now := k.locker.opts.Clock.Now()
	k.look(now)
	// What is due a little later goes along: that makes fewer pipelines.
	soon := now.Add(k.locker.opts.TTL / 100)
	k.mu.Lock()
	for len(k.flying) > 0 && !k.flying[0].renewal.at.After(now) {
		l := k.flying[0]
		overdue = append(overdue, flight{l, l.renewal.round})
		l.renewal.round = nil
		k.move(l, nil, now)
	}
	for len(k.due) > 0 && !k.due[0].renewal.at.After(soon) && len(k.flying) < maxFlying {
		l := k.due[0]
		l.renewal.round = k.locker.newRound(wire.Extend, l, k.settle)
		k.move(l, &k.flying, now.Add(k.locker.nodeTimeout(l.claim.TTL)))
		begin = append(begin, flight{l, l.renewal.round})
	}
	k.mu.Unlock()
	for _, f := range overdue {
		f.round.close()
		k.finish(f.lock, f.round)
	}
	for _, f := range begin {
		k.begin(f.lock, f.round)
	}

	k.mu.Lock()
	defer k.mu.Unlock()
	next := now.Add(time.Hour)
	if len(k.flying) > 0 {
		next = k.flying[0].renewal.at
	}
	if len(k.due) > 0 && len(k.flying) < maxFlying && k.due[0].renewal.at.Before(next) {
		next = k.due[0].renewal.at
	}
	if look := k.looked.Add(k.locker.opts.look()); !k.looked.IsZero() && look.Before(next) {
		next = look
	}
	return left(next, k.locker.opts.Clock.Now())
}

// look ends the locks whose validity was over while their alarms stood still: timers
// do, while a host is suspended, and go on with what was left of their time. So all
// locks are looked at every now and then, as long as there are any.
func (k *renewals) look(now time.Time) {
	k.mu.Lock()
	if k.looked.IsZero() || elapsed(k.looked, now) < k.locker.opts.look() {
		k.mu.Unlock()
		return
	}
	if k.looked = now; len(k.live) == 0 {
		k.looked = time.Time{}
	}
	live := slices.AppendSeq(make([]*Lock, 0, len(k.live)), maps.Keys(k.live))
	k.mu.Unlock()
	live = slices.DeleteFunc(live, func(l *Lock) bool { return left(l.Until(), now) > 0 })
	slices.SortFunc(live, func(a, b *Lock) int { return cmp.Compare(a.claim.Token, b.claim.Token) }) // in an order that a run can repeat
	for _, l := range live {
		l.expire()
	}
}

// begin sends a renewal, unless the holder extends the lock himself just now.
func (k *renewals) begin(l *Lock, r *round) {
	select {
	case l.turns() <- struct{}{}:
	default:
		if k.claim(l, r) {
			r.drop()
			// His may fail, or be given up at once, so that says nothing about ours.
			k.again(l, l.locker.opts.Clock.Now().Add(l.claim.TTL/20))
		}
		return
	}
	c := k.locker.begins(l.course.renewing(), "renew", l.name, l)
	r.course = c
	if err := l.beginExtension(r); err != nil && k.claim(l, r) {
		r.drop()
		<-l.turn
		c.ends(l, err)
	}
}

// claim makes the caller the one who finishes a renewal. It is either its
// deciding vote or the clock, and a round that the other has finished may be
// another lock's by now.
func (k *renewals) claim(l *Lock, r *round) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l.renewal.round != r {
		return false
	}
	l.renewal.round = nil
	k.move(l, nil, time.Time{})
	return true
}

// settle is called with the deciding vote of a renewal.
func (k *renewals) settle(r *round) {
	if l := r.lock; k.claim(l, r) {
		k.finish(l, r)
	}
}

func (k *renewals) finish(l *Lock, r *round) {
	c, err := r.course, l.endExtension(r, nil)
	next := r.sent.Add(l.claim.TTL / 3)
	if err != nil {
		// Tried again while validity lasts, but not as fast as a node that is
		// down says no.
		next = l.locker.opts.Clock.Now().Add(l.claim.TTL / 20)
	}
	r.drop()
	<-l.turn
	if err == nil {
		k.mu.Lock()
		if l.renewal.once {
			l.renewal.once = false
			l.renewal.users--
		}
		k.mu.Unlock()
	}
	k.again(l, next)
	c.ends(l, err)
}

// again has a lock renewed once more, if it still lives and somebody wants it.
func (k *renewals) again(l *Lock, at time.Time) {
	spent := l.spent()
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, ok := k.live[l]; ok && !spent && l.renewal.users > 0 && l.renewal.in == nil {
		k.move(l, &k.due, at)
	}
	if len(k.due) > 0 && len(k.flying) == maxFlying-1 {
		k.nudge() // turn had stopped at the bound
	}
}

// close ends the goroutine and every lock that is watched or renewed: nobody
// would tell its holder any more. The nodes keep them until their TTL is over.
func (k *renewals) close() {
	close(k.stop)
	<-k.ended
	k.mu.Lock()
	live := k.live
	k.live = nil
	flying := slices.Clone(k.flying)
	k.mu.Unlock()
	for l := range live {
		if _, ok := l.end(errShut); ok {
			k.locker.opts.Hooks.lost(l, errShut)
		}
	}
	for _, l := range flying { // what is under way ends here, too: nobody would give up on it any more
		k.mu.Lock()
		r := l.renewal.round
		k.mu.Unlock()
		if r != nil && k.claim(l, r) { // unless a vote has decided it meanwhile
			r.close()
			k.finish(l, r)
		}
	}
}

// A schedule is a heap of locks by the time at which something has to be done.
type schedule []*Lock

func (s schedule) Len() int           { return len(s) }
func (s schedule) Less(i, j int) bool { return s[i].renewal.at.Before(s[j].renewal.at) }

func (s schedule) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].renewal.index, s[j].renewal.index = i, j
}

func (s *schedule) Push(x any) {
	l := x.(*Lock)
	l.renewal.index = len(*s)
	*s = append(*s, l)
}

func (s *schedule) Pop() any {
	old := *s
	l := old[len(old)-1]
	old[len(old)-1] = nil
	*s = old[:len(old)-1]
	return l
}
