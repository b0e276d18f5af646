package judge

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
)

// valid gives the interval in which the holder may rely on the lock: from when it
// got it to the end of validity, or until it believes in it no more.
func (r *record) valid(o *op) (from, to time.Duration) {
	to = min(o.until, o.died)
	if o.release >= 0 {
		to = min(to, r.events[o.release].At)
	}
	if o.told >= 0 {
		to = min(to, r.events[o.told].At)
	}
	return r.events[o.got].At, to
}

// lock puts a hold in words.
func (r *record) lock(o *op) string {
	return fmt.Sprintf("%v (%s)", r.request(o), r.events[o.got].Token)
}

// exclusion compares each hold with the one before it, of those that exclude it, that
// reaches farthest: if it overlaps any, it overlaps that one. Who gets a slot is
// counted with those who have one then.
func exclusion(r *record) {
	farthest := make([]int, len(r.requests)) // by want: an index of r.holds, plus 1
	var slots map[string][]int               // by name: the ops that have one
	for i, k := range r.holds {
		o := &r.ops[k]
		from, to := r.valid(o)
		if from >= to {
			continue
		}
		worst, last := -1, from
		for _, v := range r.against[o.request] {
			if j := farthest[v] - 1; j >= 0 {
				if _, until := r.valid(&r.ops[r.holds[j]]); until > last || until == last && j < worst {
					worst, last = j, until
				}
			}
		}
		if worst >= 0 {
			before := &r.ops[r.holds[worst]]
			since, until := r.valid(before)
			r.violated(from, []int{before.got, o.got}, "client %d had %s from %v to %v, and client %d had %s from %v",
				before.client, r.lock(before), since, until, o.client, r.same(before, o), from)
		}
		if w := r.request(o); w.IsSlot() {
			if slots == nil {
				slots = make(map[string][]int)
			}
			all := slices.DeleteFunc(slots[w.Name], func(k int) bool { _, until := r.valid(&r.ops[k]); return until <= from })
			all = append(all, k)
			slots[w.Name] = all
			if some := r.crowd(all); some != nil {
				var got []int
				for _, k := range some {
					got = append(got, r.ops[k].got)
				}
				r.violated(from, got, "client %d had %s from %v, when %d had one already", o.client, r.lock(o), from, len(some)-1)
			}
		}
		if j := farthest[o.request] - 1; j >= 0 {
			if _, until := r.valid(&r.ops[r.holds[j]]); to <= until {
				continue
			}
		}
		farthest[o.request] = i + 1
	}
}

// same puts a hold in words after another one.
func (r *record) same(before, o *op) string {
	if before.request == o.request {
		return fmt.Sprintf("it (%s)", r.events[o.got].Token)
	}
	return r.lock(o)
}

func tokens(r *record) {
	owners := make(map[string]int, len(r.holds))
	for _, k := range r.holds {
		o := &r.ops[k]
		e := &r.events[o.got]
		if e.Token == "" {
			r.violated(e.At, []int{o.got}, "client %d got %v without a token", o.client, r.request(o))
			continue
		}
		if first, taken := owners[e.Token]; taken {
			other := &r.ops[first]
			r.violated(e.At, []int{other.got, o.got}, "client %d got %s at %v with the token with which client %d had got %v at %v",
				o.client, r.lock(o), e.At, other.client, r.request(other), r.events[other.got].At)
		} else {
			owners[e.Token] = k
		}
	}
}

// told asks for nothing where the holder has seen to it himself: he has released,
// or died, before he had to be told; nor while the lock is in nobody's hands.
func told(r *record) {
	for _, k := range r.holds {
		o := &r.ops[k]
		by := r.noticed(o.client, r.events[o.got].At, o.until)
		switch {
		case o.told >= 0 && r.events[o.told].At <= by:
		case o.release >= 0 && r.events[o.release].At <= by:
		case o.died <= by, r.last <= by:
		case o.renews && o.died < never && o.told < 0 && o.release < 0:
			// It took with it until when the lock was valid.
		case r.handedOn(k, by):
		case o.told >= 0:
			r.violated(by, []int{o.got, o.told}, "client %d had %s until %v, and was told at %v, not by %v",
				o.client, r.lock(o), o.until, r.events[o.told].At, by)
		default:
			r.violated(by, []int{o.got}, "client %d had %s until %v, and was not told by %v", o.client, r.lock(o), o.until, by)
		}
	}
}

// handedOn reports whether a hold was detached then, and not attached again.
func (r *record) handedOn(op int, at time.Duration) bool {
	return slices.ContainsFunc(r.steps, func(s step) bool {
		begin := &r.events[s.begin]
		return s.op == op && begin.Verb == history.VerbHandOn && begin.At <= at && (s.end < 0 || r.events[s.end].At > at)
	})
}

// lateSuccess excuses those who were stopped between the library's answer and the
// moment when they wrote it down, if that can be; and those who extend what renews itself, since
// nobody knows until when it was valid in between.
func lateSuccess(r *record) {
	for _, k := range r.holds {
		o := &r.ops[k]
		e := &r.events[o.got]
		if e.At < e.Until {
			continue
		}
		begin, shown := e.At, []int{o.got}
		if o.ask >= 0 {
			begin, shown = r.events[o.ask].At, []int{o.ask, o.got}
		}
		if r.run.Exact || !r.stopped(o.client, begin, e.At) {
			r.violated(e.At, shown, "client %d got %s at %v, and it was valid until %v", o.client, r.lock(o), e.At, e.Until)
		}
	}
	for i := range r.steps {
		s := &r.steps[i]
		if s.end < 0 {
			continue
		}
		o, begin, end := &r.ops[s.op], &r.events[s.begin], &r.events[s.end]
		excused := !r.run.Exact && r.stopped(o.client, begin.At, end.At)
		switch {
		case end.Kind == history.Extended && end.At >= s.until && !o.renews && !excused && begin.Verb != history.VerbHandOn:
			r.violated(end.At, []int{o.got, s.begin, s.end}, "client %d extended %s at %v, and it had been valid until %v",
				o.client, r.lock(o), end.At, s.until)
		case s.begin == o.release && end.Error == "" && begin.At > o.untilRelease+r.run.Lag && !excused:
			r.violated(end.At, []int{o.got, s.begin, s.end}, "client %d released %s at %v and heard of no error, and it had been valid until %v",
				o.client, r.lock(o), begin.At, o.untilRelease)
		}
	}
}

// continuity: who has a quorum of nodes has taken it from those who had the lock
// before, and they must find out with their next extension at the latest. That is
// so even where nodes forget, and the other should never have got it.
func continuity(r *record) {
	for i := range r.steps {
		s := &r.steps[i]
		if s.end < 0 || r.events[s.end].Kind != history.Extended {
			continue
		}
		o := &r.ops[s.op]
		begin, since := r.events[s.begin].At, r.events[o.got].At
		next, _ := slices.BinarySearchFunc(r.holds, begin, func(k int, at time.Duration) int { return cmp.Compare(r.begin(k), at) })
		for j := next - 1; j >= 0 && r.begin(r.holds[j]) > since; j-- {
			other := &r.ops[r.holds[j]]
			if from, to := r.valid(other); from < to && slices.Contains(r.against[o.request], other.request) {
				r.violated(r.events[s.end].At, []int{o.got, other.got, s.begin, s.end}, "client %d extended %s from %v on, and client %d had got it at %v",
					o.client, r.lock(o), begin, other.client, from)
				break
			}
		}
	}
}

// kept: a renewal has two thirds of a TTL to find a quorum that is there. After a
// fault it may not be: a node that was filled up while another died cannot vouch for
// the time before, and the lock is lost although a quorum has it.
func kept(r *record) {
	if !r.run.Exact {
		return
	}
	for _, k := range r.holds {
		o := &r.ops[k]
		if o.ask < 0 || o.told < 0 || r.events[o.ask].Verb != "do" || r.events[o.told].Why != "lost" {
			continue
		}
		if from, end := r.events[o.got].At, r.events[o.told].At; end < r.struck && !r.stopped(o.client, from, end) {
			r.violated(end, []int{o.got, o.told}, "client %d was told at %v that it has lost %s, which was renewed: %s",
				o.client, end, r.lock(o), r.events[o.told].Error)
		}
	}
}

func lostUpdates(r *record) {
	for _, w := range r.writes {
		if e := &r.events[w.event]; e.Value != e.Was+1 {
			shown := []int{w.event}
			if w.read >= 0 {
				shown = []int{w.read, w.event}
			}
			r.violated(e.At, shown, "client %d wrote %d to %q at %v in the place of %d", e.Client, e.Value, e.Name, e.At, e.Was)
		}
	}
}

// progress: who waits is owed a lock. Who asks once is owed one if nobody can be in
// his way, not even a scheduler.
func progress(r *record) {
	if r.run.Bound <= 0 {
		return
	}
	for i := range r.ops {
		o := &r.ops[i]
		if o.ask < 0 {
			continue
		}
		ask := &r.events[o.ask]
		waits := ask.Verb == "acquire" || ask.Verb == "do" || ask.Verb == "try" && r.run.Clients == 1 && r.run.Always && r.run.Exact
		if !waits || ask.Limit < r.run.Bound || ask.At < r.calm && !r.run.Always {
			continue
		}
		by := r.deadline(o.client, ask.At, r.run.Bound)
		switch {
		case o.got >= 0 && r.events[o.got].At <= by:
		case o.got >= 0:
			r.violated(by, []int{o.ask, o.got}, "client %d asked for %v at %v and got it at %v, not by %v",
				o.client, r.request(o), ask.At, r.events[o.got].At, by)
		case o.end >= 0:
			e := &r.events[o.end]
			r.violated(min(e.At, by), []int{o.ask, o.end}, "client %d asked for %v at %v and was denied it at %v: %s",
				o.client, r.request(o), ask.At, e.At, cmp.Or(e.Error, e.Why, "no reason given"))
		case o.died <= by, r.last <= by:
		default:
			r.violated(by, []int{o.ask}, "client %d asked for %v at %v and had not got it by %v", o.client, r.request(o), ask.At, by)
		}
	}
}

func inTime(r *record) {
	for i := range r.ops {
		if o := &r.ops[i]; o.ask >= 0 {
			r.ends(o, o.ask, o.end)
		}
	}
	for _, s := range r.steps {
		r.ends(&r.ops[s.op], s.begin, s.end)
	}
}

// ends checks that what has a limit ends by then.
func (r *record) ends(o *op, begin, end int) {
	b := &r.events[begin]
	if b.Limit <= 0 {
		return
	}
	by := r.deadline(o.client, b.At, b.Limit)
	switch {
	case end >= 0 && r.events[end].At <= by:
	case end >= 0:
		r.violated(by, []int{begin, end}, "client %d had %v from %v on to %s %v, and it took until %v",
			o.client, b.Limit, b.At, doing(b), r.request(o), r.events[end].At)
	case o.died <= by, r.last <= by:
	default:
		r.violated(by, []int{begin}, "client %d had %v from %v on to %s %v, and it had not ended by %v",
			o.client, b.Limit, b.At, doing(b), r.request(o), by)
	}
}

func doing(e *history.Event) string {
	if e.Kind == history.Ask {
		return "acquire"
	}
	return string(e.Kind)
}

func nothingLeft(r *record) {
	for _, i := range r.left {
		e := &r.events[i]
		r.violated(e.At, []int{i}, "%s", cmp.Or(e.Error, e.Why, "something is left"))
	}
}

func wellFormed(r *record) {
	for _, o := range r.amiss {
		e := &r.events[o.event]
		r.violated(e.At, []int{o.event}, "client %d, number %d, %q: %s", e.Client, e.Op, e.Kind, o.text)
	}
	books(r)
}

// books checks that each write replaces what the one before it has put there.
func books(r *record) {
	writes := make([]int, len(r.writes))
	for i, w := range r.writes {
		writes[i] = w.event
	}
	slices.SortStableFunc(writes, func(a, b int) int {
		e, f := &r.events[a], &r.events[b]
		return cmp.Or(cmp.Compare(e.Name, f.Name), cmp.Compare(e.At, f.At))
	})
	there := 0
	for i, n := 0, 0; i < len(writes); i += n {
		e := &r.events[writes[i]]
		for n = 1; i+n < len(writes); n++ {
			if f := &r.events[writes[i+n]]; f.Name != e.Name || f.At != e.At {
				break
			}
		}
		if i == 0 || r.events[writes[i-1]].Name != e.Name {
			there = 0
		}
		after, ok := r.balance(there, writes[i:i+n])
		if !ok {
			r.violated(e.At, writes[i:i+n:i+n], "%q was %d, and that is not what was replaced at %v", e.Name, there, e.At)
		}
		there = after
	}
}

// balance gives what is there after writes that happened at one instant, and so
// have no order: what they replaced must be what was there and what they have put
// there, but for the one that stays.
func (r *record) balance(there int, writes []int) (after int, ok bool) {
	last := &r.events[writes[len(writes)-1]]
	if len(writes) == 1 {
		return last.Value, last.Was == there
	}
	put, was := []int{there}, []int(nil)
	for _, i := range writes {
		put, was = append(put, r.events[i].Value), append(was, r.events[i].Was)
	}
	slices.Sort(put)
	slices.Sort(was)
	stays := 0
	for stays < len(was) && was[stays] == put[stays] {
		stays++
	}
	if !slices.Equal(was[stays:], put[stays+1:]) {
		return last.Value, false
	}
	return put[stays], true
}
