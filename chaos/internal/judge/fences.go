package judge

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
)

// fences: each fence is larger than all earlier ones of conflicting locks. A reader's may equal the
// one before it.
func fences(r *record) {
	var got, wrote []fenced
	for _, k := range r.holds {
		o := &r.ops[k]
		e := &r.events[o.got]
		// A client that was stopped when it got the lock may record it after others have got it.
		// One whose lock was broken while it was being acquired may have got it behind the next holder.
		excused := r.broken != nil && r.brokenFrom(o) <= e.At || !r.run.Exact && o.ask >= 0 && r.stopped(o.client, r.events[o.ask].At, e.At)
		if reads := r.request(o).Shared; (e.Fence > 0 || reads) && !excused {
			got = append(got, fenced{o.request, reads, o.got, e})
		}
	}
	names := make(map[string]int)
	var each [][]int // for each request, the groups of its names
	for _, w := range r.writes {
		if e := &r.events[w.event]; e.Fence > 0 {
			name, known := names[e.Name]
			if !known {
				name = len(names)
				names[e.Name], each = name, append(each, []int{name})
			}
			wrote = append(wrote, fenced{name, false, w.event, e})
		}
	}
	r.rise(got, r.against, r.run.Overlap, 1)
	r.rise(wrote, each, 0, 0)
}

// A fenced is an event with a fence. It belongs to a group that shares fences: the holds of a request, or the
// writes to a name.
type fenced struct {
	group int
	reads bool // a reader: its fence may equal the one before it
	index int
	*history.Event
}

// rise checks that each fence is higher by this step than the highest one that came before it, by at least this
// time, in the groups that count, and that no two are equal that must not be. Events of one instant have no
// order, and get the one that fits.
func (r *record) rise(all []fenced, groups [][]int, overlap time.Duration, step uint64) {
	slices.SortFunc(all, func(a, b fenced) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Fence, b.Fence), cmp.Compare(one(a.reads), one(b.reads)), cmp.Compare(a.index, b.index))
	})
	type group struct {
		number int
		fence  uint64
	}
	had := make(map[group]int)        // an index of all, plus 1: the first event with that fence
	highs := make([]int, len(groups)) // by group, the same: the event with the highest fence
	next := 0                         // the first event that does not come before f
	for i := range all {
		f := &all[i]
		for ; next < i && all[next].At+overlap <= f.At; next++ {
			n := &all[next]
			if high := highs[n.group]; high == 0 || n.Fence >= all[high-1].Fence && n.Fence-all[high-1].Fence >= step {
				highs[n.group] = next + 1
			}
		}
		high, first := 0, 0
		for _, g := range groups[f.group] {
			if h := highs[g]; h > 0 && (high == 0 || all[h-1].Fence > all[high-1].Fence || all[h-1].Fence == all[high-1].Fence && h < high) {
				high = h
			}
			if h := had[group{g, f.Fence}]; h > 0 && (first == 0 || h < first) {
				first = h
			}
		}
		least := step
		if f.reads {
			least = 0
		}
		switch {
		case high > 0 && (f.Fence < all[high-1].Fence || f.Fence-all[high-1].Fence < least):
			r.outOfOrder(&all[high-1], f)
		case first > 0 && least > 0:
			r.outOfOrder(&all[first-1], f)
		}
		if mine := (group{f.group, f.Fence}); !f.reads && had[mine] == 0 {
			had[mine] = i + 1
		}
	}
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}

func (r *record) outOfOrder(high, f *fenced) {
	what, of := r.fenced(f), ""
	if other := r.fenced(high); other != what {
		of = fmt.Sprintf(" %s %s", high.Kind, other)
	}
	r.violated(f.At, []int{high.index, f.index}, "client %d %s %s at %v with fence %d, and client %d%s at %v with fence %d",
		f.Client, f.Kind, what, f.At, f.Fence, high.Client, of, high.At, high.Fence)
}

// fenced describes an event with a fence.
func (r *record) fenced(f *fenced) string {
	if f.Kind == history.Wrote {
		return strconv.Quote(f.Name)
	}
	return r.requests[f.group].String()
}
