package judge

import (
	"math"
	"slices"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
)

func (tw *twin) judge() {
	calm := time.Duration(math.MaxInt64)
	for i := len(tw.Events) - 1; i >= 0; i-- {
		if tw.Events[i].Kind == history.Calm {
			calm = tw.Events[i].At
		}
	}
	for i, o := range tw.holds {
		tw.judgeHold(i, o, calm)
	}
	tw.judgeWaiting()
	for i, e := range tw.Events {
		tw.judgeForm(i, e)
		switch e.Kind {
		case history.Left:
			tw.add("nothing left", e.At, i)
		case history.Wrote:
			tw.judgeWrite(i, e)
		case history.Ask:
			tw.judgeAsk(i, e, calm)
		case history.Extend, history.Release:
			tw.judgeStep(i, e)
		case history.Changing, history.Break:
			tw.judgeChange(i, e)
		case history.Weighed:
			tw.judgeWeight(i, e)
		case history.Found:
			tw.judgeFound(i, e)
		case history.Lost:
			tw.judgeLost(i, e)
		}
	}
}

// blinked: a clock that was wrong for a moment may have cost the node the lock.
func (tw *twin) blinked(o twinHold, at time.Duration) bool {
	for _, e := range tw.Events {
		if e.Kind == history.Healed && e.Fault != nil && e.Fault.Kind == history.Step && e.At >= tw.Events[max(o.ask, 0)].At && e.Fault.At <= at {
			return true
		}
	}
	return false
}

func (tw *twin) judgeHold(i int, o twinHold, calm time.Duration) {
	tw.numbers.Holds++
	e := tw.Events[o.got]
	if o.ask >= 0 {
		asked := tw.Events[o.ask].At
		tw.numbers.LongestWait = max(tw.numbers.LongestWait, e.At-asked)
		if asked >= calm {
			tw.numbers.LongestWaitCalm = max(tw.numbers.LongestWaitCalm, e.At-asked)
		}
	}

	overlap, shares, high, same := -1, -1, -1, -1
	behind := -1
	for j, p := range tw.holds[:i] {
		if o.ask >= 0 && tw.lawless(p) && !tw.lawless(o) && !tw.apart(p.what, o.what) && p.from < p.to && o.from < o.to &&
			p.from < tw.Events[o.ask].At && o.from < p.to && (behind < 0 || p.to > tw.holds[behind].to) {
			behind = j
		}
		if !tw.lawless(p) && !tw.lawless(o) && !tw.apart(p.what, o.what) && p.from < p.to && o.from < o.to && max(o.from, p.from) < min(o.to, p.to) && (overlap < 0 || p.to > tw.holds[overlap].to) {
			overlap = j
		}
		if shares < 0 && tw.Events[p.got].Token == e.Token {
			shares = j
		}
	}
	if behind >= 0 && !tw.blinked(tw.holds[behind], o.from) {
		tw.add("exclusion", o.from, tw.holds[behind].got, o.got)
	}
	if overlap >= 0 && !tw.blinked(tw.holds[overlap], o.from) {
		tw.add("exclusion", o.from, tw.holds[overlap].got, o.got)
	}
	if isSlot(o.what) && o.from < o.to && !tw.lawless(o) {
		if crowd := tw.crowded(i, o); crowd != nil {
			tw.add("exclusion", o.from, crowd...)
		}
	}
	if e.Token == "" {
		tw.add("tokens", o.from, o.got)
	} else if shares >= 0 {
		tw.add("tokens", o.from, tw.holds[shares].got, o.got)
	}

	// The highest fence for the name at any earlier instant, or at the same one if it is not
	// higher: events of one instant get the order that fits. If two locks may be acquired at once,
	// only instants that are earlier by that much count. No two fences may be equal, except that a
	// reader may have the one before it.
	reads := o.what.Shared
	for j, p := range tw.holds {
		f := tw.Events[p.got]
		if tw.apart(p.what, o.what) || f.Fence == 0 && !p.what.Shared || e.Fence == 0 && !reads || j == i || tw.lateNews(p) || tw.lateNews(o) {
			continue
		}
		before := f.At < e.At
		if f.At == e.At {
			before = f.Fence < e.Fence || f.Fence == e.Fence && (reads && !p.what.Shared || reads == p.what.Shared && j < i)
		}
		if !before {
			continue
		}
		if f.Fence == e.Fence && !reads && !p.what.Shared && (same < 0 || tw.firstTo(p, tw.holds[same])) {
			same = j
		}
		if f.At+tw.Run.Overlap > e.At {
			continue
		}
		if high < 0 || tw.firstTo(p, tw.holds[high]) {
			high = j
		}
	}
	if high >= 0 && (tw.Events[tw.holds[high].got].Fence > e.Fence || tw.Events[tw.holds[high].got].Fence == e.Fence && !reads) {
		tw.add("fences", o.from, tw.holds[high].got, o.got)
	} else if same >= 0 {
		tw.add("fences", o.from, tw.holds[same].got, o.got)
	}

	tw.judgeBroken(o)
	by := tw.noticed(e.Client, o.from, o.until)
	unknown := (o.renews || o.failed) && o.died != math.MaxInt64 && o.told < 0 && o.release < 0
	noticed := unknown || o.died <= by || o.told >= 0 && tw.Events[o.told].At <= by || o.release >= 0 && tw.Events[o.release].At <= by
	handed := false
	for n, j := range o.mine {
		if f := tw.Events[j]; f.Kind != history.Extend || f.Verb != "hand on" || j < o.got || f.At > by {
			continue
		}
		back := false
		for _, k := range o.mine[n+1:] {
			f := tw.Events[k]
			if f.Kind == history.Extend || f.At > by {
				break
			}
			back = back || f.Kind == history.Extended || f.Kind == history.Failed
		}
		handed = handed || !back
	}
	if !noticed && !handed && !tw.foreign(o) && tw.last > by {
		if o.told >= 0 {
			tw.add("told", by, o.got, o.told)
		} else {
			tw.add("told", by, o.got)
		}
	}

	begin := o.from
	if o.ask >= 0 {
		begin = tw.Events[o.ask].At
	}
	if o.from >= e.Until && (tw.Run.Exact || !tw.stopped(e.Client, begin, o.from)) {
		tw.add("late success", o.from, o.ask, o.got)
	}

	if tw.Run.Exact && o.ask >= 0 && tw.Events[o.ask].Verb == "do" && o.told >= 0 {
		if f := tw.Events[o.told]; f.Why == "lost" && !tw.struckBy(o.from, f.At) && !tw.stopped(e.Client, o.from, f.At) {
			tw.add("kept", f.At, o.got, o.told)
		}
	}
}

// foreign reports whether a hold is of a client of another library.
func (tw *twin) foreign(o twinHold) bool { return o.ask >= 0 && tw.Events[o.ask].Verb == "plain" }

// lawless reports the same, and that it may have got what another client has.
func (tw *twin) lawless(o twinHold) bool { return tw.Run.Forgetful && tw.foreign(o) }

// lateNews reports whether a hold may have been recorded later than it was acquired.
func (tw *twin) lateNews(o twinHold) bool {
	return o.broken <= o.from || !tw.Run.Exact && o.ask >= 0 && tw.stopped(tw.Events[o.got].Client, tw.Events[o.ask].At, o.from)
}

// judgeBroken: the first breaking of a hold's lock that was confirmed ends it.
func (tw *twin) judgeBroken(o twinHold) {
	first := -1
	for i, e := range tw.Events {
		if e.Kind != history.Break || e.Token != tw.Events[o.got].Token || tw.breaks(i) != "" {
			continue
		}
		for j := i + 1; j < len(tw.Events); j++ {
			if f := tw.Events[j]; f.Kind == history.Broke && f.Client == e.Client && f.Op == e.Op {
				if first < 0 || j < first {
					first = j
				}
				break
			}
		}
	}
	if first < 0 {
		return
	}
	if by := tw.Events[first].Until + tw.Run.Lag; o.until > by {
		tw.add("broken", by, o.got, first)
	}
	for n, i := range o.mine {
		if tw.Events[i].Kind != history.Extend || i < o.got || tw.Events[i].At <= tw.Events[first].At {
			continue
		}
		for _, j := range o.mine[n+1:] {
			f := tw.Events[j]
			if f.Kind == history.Extended {
				tw.add("broken", f.At, o.got, first, i, j)
			}
			if f.Kind == history.Extended || f.Kind == history.Failed || f.Kind == history.Extend {
				break
			}
		}
	}
}

func (tw *twin) struckBy(from, at time.Duration) bool {
	if tw.Run.Planned {
		at = min(at, from+tw.Run.TTL)
	}
	return slices.ContainsFunc(tw.Events, func(e history.Event) bool {
		if tw.Run.Planned && e.At < from {
			return false
		}
		return (e.Kind == history.Struck || e.Kind == history.Changing || e.Kind == history.Changed || e.Kind == history.Break || e.Kind == history.Broke) && e.At <= at
	})
}

// firstTo reports whether p is the hold with the higher fence, or the first one with that fence.
func (tw *twin) firstTo(p, q twinHold) bool {
	a, b := tw.Events[p.got], tw.Events[q.got]
	if a.Fence != b.Fence || a.At != b.At {
		return a.Fence > b.Fence || a.Fence == b.Fence && a.At < b.At
	}
	return q.what.Shared && !p.what.Shared || q.what.Shared == p.what.Shared && p.got < q.got
}

func (tw *twin) judgeWeight(i int, e history.Event) {
	if e.Weight == nil {
		return
	}
	for _, heavy := range []bool{
		tw.Run.MostKeys > 0 && e.Weight.Keys > tw.Run.MostKeys,
		tw.Run.MostBytes > 0 && e.Weight.Bytes > tw.Run.MostBytes,
		tw.Run.MostRequests > 0 && e.Weight.Requests > tw.Run.MostRequests,
	} {
		if heavy {
			tw.add("bounded", e.At, i)
		}
	}
}

// judgeFound counts the nodes that have answered that they do not have the token.
func (tw *twin) judgeFound(i int, e history.Event) {
	o := tw.holdOf(i, e.Client, e.Op)
	if o != nil && e.At < o.to && tw.Run.Quorum-e.Was > e.Value {
		tw.add("on a quorum", e.At, o.got, i)
	}
}

func (tw *twin) judgeLost(i int, e history.Event) {
	for _, o := range tw.holds {
		if o.ask < 0 || tw.Events[o.ask].Verb == "plain" {
			continue
		}
		if asked := tw.Events[o.ask].At - tw.Run.Lag; asked > e.At && o.from < e.Until {
			tw.add("restored", o.from, i, o.ask, o.got)
		}
	}
}

func (tw *twin) judgeWrite(i int, e history.Event) {
	tw.numbers.Writes++
	if e.Value-e.Was != 1 {
		read := -1
		for _, j := range tw.lifeOf(i) {
			if f := tw.Events[j]; f.Kind == history.Read && j < i && tw.holdOf(j, e.Client, e.Op) != nil {
				read = j
			}
		}
		tw.add("lost updates", e.At, read, i)
	}

	high := -1
	there, last := 0, -1
	var same []int
	for j, f := range tw.Events {
		if f.Kind != history.Wrote || f.Name != e.Name {
			continue
		}
		if f.At == e.At {
			same = append(same, j)
		}
		if f.At < e.At {
			last = j
		}
		before := f.At < e.At || f.At == e.At && (f.Fence < e.Fence || f.Fence == e.Fence && j < i)
		if f.Fence > 0 && before && (high < 0 || f.Fence > tw.Events[high].Fence ||
			f.Fence == tw.Events[high].Fence && (f.At > tw.Events[high].At || f.At == tw.Events[high].At && j > high)) {
			high = j
		}
	}
	if high >= 0 && e.Fence > 0 && tw.Events[high].Fence > e.Fence {
		tw.add("fences", e.At, high, i)
	}
	if same[0] != i {
		return
	}
	if last >= 0 {
		there = tw.balance(tw.Events[last])
	}
	if _, ok := tw.booked(there, same); !ok {
		tw.add("well-formed", e.At, same...)
	}
}

// balance is the value after the writes at the instant of one of them.
func (tw *twin) balance(e history.Event) int {
	there, at := 0, time.Duration(-1)
	for {
		var same []int
		next := time.Duration(-1)
		for j, f := range tw.Events {
			if f.Kind == history.Wrote && f.Name == e.Name && f.At > at {
				if next < 0 {
					next = f.At
				}
				if f.At == next {
					same = append(same, j)
				}
			}
		}
		there, _ = tw.booked(there, same)
		if at = next; at == e.At {
			return there
		}
	}
}

// booked counts, for each value, how often it was written and how often it was replaced.
func (tw *twin) booked(there int, writes []int) (after int, ok bool) {
	after = tw.Events[writes[len(writes)-1]].Value
	if len(writes) == 1 {
		return after, tw.Events[writes[0]].Was == there
	}
	count := map[int]int{there: 1}
	for _, i := range writes {
		count[tw.Events[i].Value]++
		count[tw.Events[i].Was]--
	}
	stays := []int(nil)
	for value, n := range count {
		switch {
		case n == 1:
			stays = append(stays, value)
		case n != 0:
			return after, false
		}
	}
	if len(stays) != 1 {
		return after, false
	}
	return stays[0], true
}

// holdOf returns the hold that an event belongs to.
func (tw *twin) holdOf(i, client, op int) *twinHold {
	for k, o := range tw.holds {
		if e := tw.Events[o.got]; e.Client == client && e.Op == op && o.got < i && slices.Contains(o.mine, i) {
			return &tw.holds[k]
		}
	}
	return nil
}

func (tw *twin) judgeAsk(i int, e history.Event, calm time.Duration) {
	mine := tw.lifeOf(i)
	if mine[0] != i {
		return
	}
	tw.numbers.Asks++
	got, end := tw.first(mine, history.Got), tw.first(mine, history.Got, history.Denied)
	if e.Limit > 0 {
		tw.ends("in time", e, i, end, tw.deadline(e.Client, e.At, e.Limit))
	}
	if tw.Run.Settled && e.Verb == "try" && got < 0 && end >= 0 && !slices.ContainsFunc(tw.holds, func(h twinHold) bool {
		from := h.from
		if h.ask >= 0 {
			from = tw.Events[h.ask].At
		}
		return !tw.apart(h.what, e) && from <= tw.Events[end].At && tw.free(h) >= e.At
	}) {
		tw.add("progress", tw.Events[end].At, i, end)
	}
	counts := e.Verb == "acquire" || e.Verb == "do" || e.Verb == "try" && tw.Run.Clients == 1 && tw.Run.Always && tw.Run.Exact
	if !counts || tw.Run.Bound <= 0 || e.Limit < tw.Run.Bound || e.At < calm && !tw.Run.Always {
		return
	}
	by := tw.deadline(e.Client, e.At, tw.Run.Bound)
	if got < 0 && end >= 0 && e.Verb == "try" {
		for _, h := range tw.holds {
			told, release := tw.first(h.mine, history.Told), tw.first(h.mine, history.Release)
			if told >= 0 && told < release && tw.Events[told].Client == e.Client {
				if f := tw.Events[release]; f.At <= e.At && e.At < f.At+f.Limit {
					return
				}
			}
		}
	}
	if got < 0 && end >= 0 && tw.Events[end].Why == "refused" {
		return
	}
	if got < 0 && end >= 0 {
		tw.add("progress", min(by, tw.Events[end].At), i, end)
	} else {
		tw.ends("progress", e, i, got, by)
	}
}

// judgeChange: a change of the set ends in time. Of several beginnings the first one counts.
func (tw *twin) judgeChange(i int, e history.Event) {
	same := func(f history.Event, kind history.Kind) bool {
		return f.Kind == kind && f.Client == e.Client && f.Op == e.Op
	}
	if e.Limit <= 0 || slices.ContainsFunc(tw.Events[:i], func(f history.Event) bool { return same(f, history.Changing) || same(f, history.Break) }) {
		return
	}
	end := slices.IndexFunc(tw.Events[i:], func(f history.Event) bool { return same(f, history.Changed) || same(f, history.Broke) })
	if end >= 0 {
		end += i
	}
	tw.ends("in time", e, i, end, tw.deadline(e.Client, e.At, e.Limit))
}

func (tw *twin) judgeStep(i int, e history.Event) {
	o := tw.holdOf(i, e.Client, e.Op)
	if o == nil {
		return
	}
	ends := []history.Kind{history.Extended, history.Failed}
	if e.Kind == history.Release {
		ends = []history.Kind{history.Released}
	}
	end, until := -1, tw.Events[o.got].Until
	for _, j := range o.mine {
		f := tw.Events[j]
		if j > i && f.Kind == e.Kind {
			break
		}
		if j > i && slices.Contains(ends, f.Kind) {
			end = j
			break
		}
		if j < o.got || e.Kind == history.Release && j > i {
			continue
		}
		switch f.Kind {
		case history.Extended, history.Renewed, history.Release:
			until = max(until, f.Until)
		case history.Told:
			if j == o.told {
				until = max(until, f.Until)
			}
		}
	}
	if e.Limit > 0 {
		tw.ends("in time", e, i, end, tw.deadline(e.Client, e.At, e.Limit))
	}
	if end < 0 {
		return
	}
	f := tw.Events[end]
	if f.Kind == history.Extended && !tw.lawless(*o) {
		between := -1
		since := tw.Events[o.got].At
		for j, p := range tw.holds {
			if !tw.apart(p.what, o.what) && p.from < p.to && p.from > since && p.from < e.At &&
				(between < 0 || p.from >= tw.holds[between].from) {
				between = j
			}
		}
		if between >= 0 {
			tw.add("continuity", f.At, o.got, tw.holds[between].got, i, end)
		}
	}
	if tw.foreign(*o) || !tw.Run.Exact && tw.stopped(e.Client, e.At, f.At) {
		return
	}
	unsure := slices.ContainsFunc(o.mine, func(j int) bool { return j > o.got && j < end && tw.Events[j].Kind == history.Failed })
	late := f.Kind == history.Extended && until <= f.At && !o.renews && !unsure && e.Verb != "hand on" ||
		f.Kind == history.Released && o.release == i && f.Error == "" && e.At > until+tw.Run.Lag
	if late {
		tw.add("late success", f.At, o.got, i, end)
	}
}

// ends checks that an operation has ended by some time.
func (tw *twin) ends(rule string, e history.Event, begin, end int, by time.Duration) {
	switch {
	case end >= 0 && tw.Events[end].At > by:
		tw.add(rule, by, begin, end)
	case end < 0 && tw.died(begin) > by && tw.last > by:
		tw.add(rule, by, begin)
	}
}
