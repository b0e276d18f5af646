package judge

import (
	"cmp"
	"slices"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
)

// told does not apply to clients of other libraries, nor if the holder has released, or died, before it had to be told, nor while the
// lock is detached.
func told(r *record) {
	for _, k := range r.holds {
		o := &r.ops[k]
		by := r.noticed(o.client, r.events[o.got].At, o.until)
		switch {
		case r.foreign(o):
		case o.told >= 0 && r.events[o.told].At <= by:
		case o.release >= 0 && r.events[o.release].At <= by:
		case o.died <= by, r.last <= by:
		case (o.renews || o.failed) && o.died < never && o.told < 0 && o.release < 0:
			// With the client its end of validity was lost: a renewal, or late answers to an
			// extension that had failed, may have put it off.
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

// lateSuccess excuses clients that were stopped between the library's answer and its record, in
// arenas where that is possible; extensions of a lock that renews itself, since its end of
// validity in between is not known; and extensions after one that failed, since late answers may
// have confirmed that one in between. How clients of other libraries extend and release is their own affair.
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
		if s.end < 0 || r.foreign(&r.ops[s.op]) {
			continue
		}
		o, begin, end := &r.ops[s.op], &r.events[s.begin], &r.events[s.end]
		excused := !r.run.Exact && r.stopped(o.client, begin.At, end.At)
		switch {
		case end.Kind == history.Extended && end.At >= s.until && !o.renews && !s.unsure && !excused && begin.Verb != history.VerbHandOn:
			r.violated(end.At, []int{o.got, s.begin, s.end}, "client %d extended %s at %v, and it had been valid until %v",
				o.client, r.lock(o), end.At, s.until)
		case s.begin == o.release && end.Error == "" && begin.At > o.untilRelease+r.run.Lag && !excused:
			r.violated(end.At, []int{o.got, s.begin, s.end}, "client %d released %s at %v and heard of no error, and it had been valid until %v",
				o.client, r.lock(o), begin.At, o.untilRelease)
		}
	}
}

// continuity: a client that has a quorum of nodes has taken it from earlier holders, which must
// notice with their next extension at the latest. That holds even if nodes forget, and the other
// client should never have got the lock.
func continuity(r *record) {
	for i := range r.steps {
		s := &r.steps[i]
		if s.end < 0 || r.events[s.end].Kind != history.Extended {
			continue
		}
		o := &r.ops[s.op]
		if r.run.Forgetful && r.foreign(o) {
			continue
		}
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

// kept: a renewal has two thirds of a TTL to reach a quorum. After a fault it may fail: a node that
// was refilled while another died says nothing about the time before, and the lock is lost although
// a quorum has it. So it may after a change of the set: where a quorum needs one node more, a lock that only
// the old quorum has got needs a node that was refilled. In a planned run these excuse it only within a TTL after
// the lock was acquired: until it is renewed it may be on no more than a quorum. At most one member is down at a time, and
// each change waits until the locks of the one before are over.
func kept(r *record) {
	if !r.run.Exact {
		return
	}
	for _, k := range r.holds {
		o := &r.ops[k]
		if o.ask < 0 || o.told < 0 || r.events[o.ask].Verb != "do" || r.events[o.told].Why != "lost" {
			continue
		}
		if from, end := r.events[o.got].At, r.events[o.told].At; !r.excused(from, end) && !r.stopped(o.client, from, end) {
			r.violated(end, []int{o.got, o.told}, "client %d was told at %v that it has lost %s, which was renewed: %s",
				o.client, end, r.lock(o), r.events[o.told].Error)
		}
	}
}

// excused reports whether anything has gone wrong, or was changed, by which a lock that was acquired at from may be lost
// at end.
func (r *record) excused(from, end time.Duration) bool {
	if !r.run.Planned {
		return r.struck <= end
	}
	return slices.ContainsFunc(r.events, func(e history.Event) bool {
		switch e.Kind {
		case history.Struck, history.Changing, history.Changed, history.Break, history.Broke:
			return e.At >= from && e.At <= min(end, from+r.run.TTL)
		}
		return false
	})
}
