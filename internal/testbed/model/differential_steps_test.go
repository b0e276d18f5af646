package model_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/testbed/model"
	"github.com/quorumlock/redlock/internal/wire"
)

// A step is a call of a script, or something else that happens to the node. A value that depends on
// the moment, or on earlier steps, is given relative to that, and filled in when the step is made.
type step struct {
	call  model.Call
	other string // "foreign", "flush", "flush counters", "flush scripts", "join", "join unmarked", "mark", "listen", "heard"; or "": the call
	pause time.Duration
	do    func() // called instead, for both subjects

	fence    time.Duration // Acquire: the fence relative to the time; Raise: in microseconds, relative to the key's last fence
	garbage  int64         // Acquire: the fence itself; 0: use fence
	latest   time.Duration // Acquire: relative to the time; 0: there is none
	mark     string        // the marker that the client knows: "right", "older", "another's", or "": it does not compare
	theirs   bool          // the token is that of the key's holder, if there is one
	messages int           // "heard": how many there are

	hello wire.Hello                 // "join"
	clock time.Duration              // "join": the client's clock relative to the time
	wrote func(now time.Time) string // "mark": the new marker; "join": the one that is known
	text  string
}

func (s step) String() string {
	what := s.other
	if what == "" {
		what = fmt.Sprintf("%v by %s for %v, fence %d, latest %d, mark %q, ticket %d of %q for %v", s.call.Op, s.call.Token, s.call.TTL, s.call.Fence, s.call.Latest, s.mark, s.call.Ticket, s.call.Waiter, s.call.Lease)
	}
	if s.other == "join" {
		what += fmt.Sprintf(" telling %q", s.hello.Keep)
	}
	if s.call.Args != nil {
		what += fmt.Sprintf(" with %q", s.call.Args)
	}
	return fmt.Sprintf("%v later %s %v %s", s.pause, what, s.call.Keys, s.call.Modes)
}

// key is the name under which the last fence is kept.
func (s step) key() string { return strings.Join(s.call.Keys, " ") + s.call.Modes }

// holder is the token of the key's holder.
func (s step) holder(n *model.Node) string {
	for key, token := range n.Tokens() {
		if len(s.call.Keys) > 0 && key == s.call.Keys[0] {
			return token
		}
	}
	return ""
}

// now fills in what depends on the moment, on the key's last fence and on its holder.
func (s step) now(now time.Time, last int64, holder string) step {
	if s.theirs && holder != "" {
		s.call.Token = holder
	}
	switch {
	case s.call.Op == wire.Raise:
		s.call.Fence = max(1, last+s.fence.Microseconds())
	case s.garbage != 0:
		s.call.Fence = s.garbage
	default:
		s.call.Fence = now.Add(s.fence).UnixMicro()
	}
	s.hello.Time = now.Add(s.clock).UnixMilli()
	if s.wrote != nil {
		s.text = s.wrote(now)
	}
	if s.call.Op == wire.Plain {
		s.call.Latest = now.Add(cmp.Or(s.latest, 10*time.Second)).UnixMicro()
	} else if s.latest != 0 {
		s.call.Latest = now.Add(s.latest).UnixMicro()
	}
	return s
}

// marked fills in the marker. It may differ between the subjects, since it has the time of a join.
func (s step) marked(right string) model.Call {
	c := s.call
	switch s.mark {
	case "right":
		c.Mark = right
	case "older":
		c.Mark = wire.RunID(right) + ":1"
		if m, ok := wire.ParseMarker(right); ok {
			m.Born = 1
			c.Mark = m.String()
		}
	case "another's":
		c.Mark = "another:1"
	}
	return c
}

// while gives what one says who joins, with the marker that it knows.
func (s step) while(right string) wire.Hello {
	if s.hello.While = s.marked(right).Mark; s.wrote != nil {
		s.hello.While = s.text
	}
	return s.hello
}

// pick draws one of several values.
func pick[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

const us = time.Microsecond

// described is a description of a set. Ballot is one of a few ballots.
func described(set string, epoch int64) *wire.Description {
	return &wire.Description{MaxTTL: 10_000, Epoch: epoch, Set: set, Members: []string{name, "node1", "node2"}}
}

func ballot(n int) string { return fmt.Sprintf("%024d", n) }

// tells draws what one who joins tells the node of its set: mostly nothing, since from the second epoch on
// some answers cannot be had any more.
func tells(rng *rand.Rand) wire.Kept {
	if rng.IntN(2) == 0 {
		return wire.Kept{}
	}
	return wire.Kept{Self: pick(rng, "", name, "another's"), Description: described(pick(rng, "S", "S", "T"), pick[int64](rng, 1, 1, 2, 3))}
}

// choosing draws the arguments of choose.lua, and merging those of merge.lua.
func choosing(rng *rand.Rand) []string {
	epoch, value := pick[int64](rng, 1, 1, 2, 2, 3), ""
	if rng.IntN(2) == 0 {
		d := described("S", epoch)
		d.Since = int64(rng.IntN(2))
		value = d.Text()
	}
	set := "S"
	if epoch == 1 {
		set = ""
	}
	args := []string{fmt.Sprint(epoch), ballot(rng.IntN(4)), value, pick(rng, set, set, set, "T", "")}
	if value != "" && rng.IntN(3) == 0 {
		return append(args, "comes")
	}
	return append(args, "")
}

func merging(rng *rand.Rand) []string {
	if rng.IntN(2) == 0 {
		return nil
	}
	args := []string{"0"}
	for range rng.IntN(3) {
		args = append(args, fmt.Sprint(1+rng.IntN(1000)), *script.Bucket(pick(rng, "a", "b", "c")))
	}
	args[0] = fmt.Sprint(len(args) / 2)
	for range rng.IntN(3) {
		args = append(args, fmt.Sprint(1+rng.IntN(1000)), *script.Bucket(pick(rng, "a", "b", "c")))
	}
	if len(args) == 1 {
		return nil
	}
	return args
}

// twin and child share the bucket of "a": another name, and a name in the folder "a". So a lock on
// both has one counter for two keys.
var (
	twin  = "b" + sharing("b")
	child = sharing("a/")
)

// sharing finds the rest of a key that has this prefix and the bucket of "a".
func sharing(prefix string) string {
	for i := 0; ; i++ {
		if name := fmt.Sprint(i); script.Bucket(prefix+name) == script.Bucket("a") {
			return name
		}
	}
}

// shapes are kinds of locks: their keys and modes.
var shapes = []struct {
	keys        []string
	modes       string
	slots, slot int
}{
	{keys: []string{"a"}, modes: "x"},
	{keys: []string{"b"}, modes: "x"},
	{keys: []string{"a"}, modes: "s"},
	{keys: []string{"a", "b"}, modes: "xx"},
	{keys: []string{"a", "b"}, modes: "ss"},
	{keys: []string{"a", "a/b"}, modes: "wx"},
	{keys: []string{"a", "a/b"}, modes: "rs"},
	{keys: []string{"a", "a/b", "a/b/c"}, modes: "wwx"},
	{keys: []string{"a", twin}, modes: "xx"},
	{keys: []string{twin}, modes: "x"},
	{keys: []string{"a", "a/" + child}, modes: "wx"},
	{keys: []string{"a/" + child}, modes: "s"},
	{keys: []string{"a", "a:slot:1"}, modes: "lo", slots: 2, slot: 1},
	{keys: []string{"a", "a:slot:2"}, modes: "lo", slots: 2, slot: 2},
}

// steps draws a sequence. In virtual time, steps are at multiples of 10 ms and keys expire between
// them, since a miniredis does not round to milliseconds as Redis does; and now and then many hours
// go by, over which a counter stays. In real time nothing expires, since the test would have to wait;
// and every fence is one that the node accepts as it is, or the node's clock would show in it.
//
// Each sequence is about a few kinds of locks that share keys. A token is of one kind, and so is a
// waiter. Most sequences have a subscriber, at least for a while.
func steps(rng *rand.Rand, virtual bool) (all []step) {
	kinds := rng.Perm(len(shapes))[:1+rng.IntN(4)]
	switch rng.IntN(5) {
	case 0:
		kinds = []int{0, 1} // the usual one
	case 1:
		kinds = []int{12, 13}
	case 2:
		kinds = []int{0, 8, 9, 10, 11} // all of one bucket
	}
	if rng.IntN(4) > 0 {
		all = append(all, step{other: "listen"})
	}
	for range 40 {
		kind := pick(rng, kinds...)
		shape := shapes[kind]
		s := step{
			call: model.Call{
				Op:    pick(rng, wire.Acquire, wire.Raise, wire.Extend, wire.Release, wire.Leave, wire.Yield, wire.Inspect, wire.Set, wire.Plain, wire.Wake, wire.Break),
				Keys:  shape.keys,
				Modes: shape.modes,
				Slots: shape.slots,
				Slot:  shape.slot,
				Token: fmt.Sprintf("token.%d.%d.@a@@", kind, rng.IntN(3)),
				TTL:   time.Duration(rng.IntN(8))*10*time.Millisecond + 15*time.Millisecond,
			},
			mark: pick(rng, "", "right", "right", "right", "right", "older", "another's"),
		}
		if rng.IntN(3) == 0 {
			s.call.Op = pick(rng, wire.Acquire, wire.Acquire, wire.Release, wire.Yield)
		}
		if (s.call.Op == wire.Plain || s.call.Op == wire.Wake) && shape.modes != "x" { // and a token is of one kind
			s.call.Op = wire.Acquire
		}
		far := func() { // a fence anywhere
			s.fence = 100*time.Millisecond + time.Duration(rng.IntN(300))*time.Millisecond
			if virtual {
				s.fence = pick(rng, s.fence, -s.fence, 0,
					500*time.Millisecond-us, 500*time.Millisecond, 500*time.Millisecond+us, 25*365*24*time.Hour,
					us-500*time.Millisecond, -500*time.Millisecond, -us-500*time.Millisecond, -20*365*24*time.Hour)
				s.garbage = pick[int64](rng, 0, 0, 0, 0, 0, 0, 1, -1, 1<<53, math.MaxInt64, math.MinInt64)
			}
		}
		switch rng.IntN(16) {
		case 0:
			s.call.Op, s.call.Args = wire.Choose, choosing(rng)
		case 1:
			s.call.Op, s.call.Args = wire.Merge, merging(rng)
		}
		switch s.call.Op {
		case wire.Yield:
			s.call.Waiter, s.call.Ticket = waiter(rng, kind)
			s.call.Lease, s.latest = time.Second, pick(rng, -time.Minute, time.Minute, time.Minute)
		case wire.Leave:
			s.call.Waiter, s.call.Ticket = waiter(rng, kind)
		case wire.Break:
			s.call.Broken = time.Duration(rng.IntN(8))*10*time.Millisecond + 15*time.Millisecond
		case wire.Plain:
			// No fence is at the edge of what counts: between its commands a model node may take a moment.
			if s.fence = 100*time.Millisecond + time.Duration(rng.IntN(300))*time.Millisecond; virtual {
				s.fence = pick(rng, s.fence, s.fence, -s.fence, s.fence-time.Second, 24*time.Hour, -24*time.Hour)
				s.latest = pick(rng, 0, 0, 0, 0, -10*time.Millisecond, -time.Hour, time.Hour)
			}
		case wire.Set:
			s.call.Token = pick(rng, fmt.Sprintf("another's.%d.@a@@", rng.IntN(3)), "")
		case wire.Raise:
			s.fence = pick(rng, -us, 0, us, time.Second)
		case wire.Acquire:
			s.call.Waiter, s.call.Ticket = waiter(rng, kind)
			s.call.Lease = pick(rng, 30*time.Millisecond, time.Second, 3*time.Second, 4*time.Second)
			if rng.IntN(4) == 0 {
				s.call.Waiter, s.call.Ticket = "", pick[int64](rng, 0, 0, -1)
			}
			s.latest = pick(rng, 0, 0, -time.Minute, time.Minute)
			if far(); virtual {
				s.latest = pick(rng, 0, 0, 0, -time.Minute, -us, 1, us, time.Minute) // 1: the same microsecond
			}
		}
		if shape.modes == "x" && s.call.Op < wire.Inspect {
			s.theirs = s.call.Op != wire.Acquire && rng.IntN(2) == 0
		}
		switch rng.IntN(40) {
		case 0:
			s.other = "foreign"
		case 1, 2:
			s.other = pick(rng, "flush", "flush", "flush counters")
		case 3, 4:
			s.other = "flush scripts"
		case 5, 6:
			s.other = "join"
			s.hello.Keep = tells(rng)
			s.clock = pick(rng, 0, 0, -time.Hour, time.Hour)
		case 7:
			s.other = "join unmarked"
		case 8:
			s.other = pick(rng, "listen", "listen", "heard")
		}
		if s.other != "" && (s.call.Op == wire.Choose || s.call.Op == wire.Merge) {
			s.call.Op, s.call.Args = wire.Inspect, nil
		}
		switch {
		case !virtual:
			// Which of two holders has the longer rest must not depend on how long the server takes for a step.
			s.call.TTL = time.Hour + 1000*s.call.TTL
			if s.call.Lease > 0 {
				s.call.Lease = pick(rng, 3*time.Second, 30*time.Second) // the longest that counts, and one that does not
			}
		case rng.IntN(20) == 0:
			s.pause = pick(rng, 20*time.Minute, 13*time.Hour, 24*time.Hour+30*time.Minute, 26*time.Hour)
		default:
			s.pause = time.Duration(rng.IntN(4)) * 10 * time.Millisecond
		}
		if virtual && rng.IntN(8) == 0 {
			s.call.TTL += 30 * time.Hour
		}
		all = append(all, s)
	}
	return append(all, step{other: "heard"})
}

// turns draws a sequence about one lock that changes hands. All waiters live until its end.
func turns(rng *rand.Rand, virtual bool) []step {
	all := []step{{other: "listen"}}
	for i := range 40 {
		s := step{
			call: model.Call{
				Op:    pick(rng, wire.Acquire, wire.Acquire, wire.Acquire, wire.Plain, wire.Release, wire.Release, wire.Raise, wire.Extend, wire.Yield, wire.Leave, wire.Inspect),
				Keys:  []string{"a"},
				Modes: "x",
				Token: fmt.Sprint("token.0.", i, ".@a@@"),
				TTL:   time.Hour,
				Lease: pick(rng, 1505*time.Millisecond, 2505*time.Millisecond),
			},
			pause:  time.Duration(rng.IntN(4)) * 10 * time.Millisecond,
			fence:  100*time.Millisecond + time.Duration(rng.IntN(300))*time.Millisecond,
			latest: time.Minute,
			mark:   "right",
			theirs: true,
		}
		s.call.Waiter, s.call.Ticket = waiter(rng, 0)
		switch {
		case s.call.Op == wire.Acquire, s.call.Op == wire.Plain:
			s.theirs = false
		case s.call.Op == wire.Raise:
			s.fence = pick(rng, -us, us, time.Second)
		}
		if !virtual {
			s.pause, s.call.Lease = 0, 3*time.Second
		}
		if rng.IntN(40) == 0 {
			s.other = pick(rng, "listen", "heard")
		}
		all = append(all, s)
	}
	return append(all, step{other: "heard"})
}

// waiter draws one of four waiters, two of which came at the same instant.
func waiter(rng *rand.Rand, kind int) (name string, ticket int64) {
	n := rng.IntN(4)
	return fmt.Sprintf("process.%d%d", kind, n), []int64{1e15, 1e15 + 1, 1e15 + 1, 1e15 - 1}[n]
}

// scripted has sequences that are not drawn. Those with pauses are for virtual time only.
func scripted(virtual bool) (all [][]step) {
	call := func(op wire.Op, token string) step {
		return step{call: model.Call{Op: op, Keys: []string{"a"}, Modes: "x", Token: token, TTL: 30 * time.Hour}, mark: "right"}
	}
	raise := func(token string, by time.Duration) step {
		s := call(wire.Raise, token)
		s.fence = by
		return s
	}
	after := func(pause time.Duration, s step) step {
		s.pause = pause
		return s
	}
	const mine, yours = "token.1.@a@@", "token.2.@a@@"
	acquire, extend, release, look := call(wire.Acquire, mine), call(wire.Extend, mine), call(wire.Release, mine), call(wire.Inspect, "")
	another := call(wire.Acquire, yours)
	as := func(s step, n int) step {
		s.call.Waiter, s.call.Ticket = fmt.Sprint("process.", n), int64(1e15)+int64(n)
		s.call.Lease = 3 * time.Second
		return s
	}
	leave := func(n int) step { return as(call(wire.Leave, ""), n) }
	first, second, third := as(another, 1), as(another, 2), as(call(wire.Acquire, "token.3.@a@@"), 3)
	dead, shared, below := first, first, acquire
	dead.call.Lease, shared.call.Modes = 30*time.Second, "s"
	below.call.Keys, below.call.Modes = []string{"a", "a/b"}, "wx"
	notBelow := below
	notBelow.call.Op = wire.Release
	yield := as(call(wire.Yield, yours), 1)
	yield.latest = time.Minute
	listen, heard := step{other: "listen"}, step{other: "heard"}
	breaks := call(wire.Break, mine)
	breaks.call.Broken = time.Hour
	ours := another
	ours.call.Ticket = -1
	flush, join := step{other: "flush", call: acquire.call}, step{other: "join"}
	says := func(clock time.Duration) step {
		return step{other: "join", clock: clock}
	}
	marked := func(runID string, born, writer time.Duration) step {
		return step{other: "mark", wrote: func(now time.Time) string {
			return wire.Marker{RunID: runID, Born: now.Add(born).UnixMilli(), Writer: now.Add(writer).UnixMilli()}.String()
		}}
	}
	plain, plain2, flushScripts := call(wire.Plain, mine), call(wire.Plain, yours), step{other: "flush scripts"}
	number := func(s step, off time.Duration) step {
		s.fence = off
		return s
	}
	noTable := step{other: "flush counters", call: acquire.call}
	told := func(self, set string, epoch int64) step {
		s := step{other: "join", mark: "right"}
		s.hello.Keep = wire.Kept{Self: self, Description: described(set, epoch)}
		return s
	}
	knows := func(mark string, s step) step {
		s.mark = mark
		return s
	}
	knowing := func(mark, s step) step {
		s.wrote = mark.wrote
		return s
	}
	choose := func(epoch int64, n int, value *wire.Description) step {
		s := call(wire.Choose, "")
		if s.call.Args = []string{fmt.Sprint(epoch), ballot(n), "", "", ""}; value != nil {
			s.call.Args[2] = value.Text()
		}
		if epoch > 1 {
			s.call.Args[3] = "S"
		}
		return s
	}
	comes := func(value *wire.Description) step {
		s := choose(value.Epoch, 1, value)
		s.call.Args[4] = "comes"
		return s
	}
	merge := func(args ...string) step {
		s := call(wire.Merge, "")
		s.call.Args = args
		return s
	}
	first1, first2 := described("S", 1), described("T", 1)
	a := *script.Bucket("a")
	below.call.TTL = time.Hour
	belowRaised := below
	belowRaised.call.Op, belowRaised.fence = wire.Raise, time.Second
	inSlot := func(token string, n int) step {
		s := call(wire.Acquire, token)
		s.call.Keys, s.call.Modes, s.call.Slots, s.call.Slot = []string{"a", fmt.Sprint("a:slot:", n)}, "lo", 2, n
		return s
	}
	all = [][]step{
		{inSlot(mine, 1), inSlot(yours, 1), inSlot(yours, 2), inSlot("token.3.@a@@", 1), inSlot("token.3.@a@@", 2)},
		{acquire, raise(mine, -us), look, raise(mine, 0), look, raise(mine, us), look, raise(mine, time.Hour), look, acquire, look},
		{acquire, release, another, raise(mine, time.Second), look, raise(yours, time.Second), look},
		{acquire, flush, raise(mine, 0), look, join, raise(mine, 0), look},
		{acquire, noTable, raise(mine, time.Second), look, acquire, look, extend, release, another, look},
		{below, noTable, belowRaised, below, look},
		{acquire, noTable, as(another, 1), release, look, as(another, 1), look},
		{acquire, raise(mine, time.Hour), release, another, look}, // one more than the counter, and not the proposed fence
		{flush, acquire, extend, look, join, acquire, look, join},
		{flush, says(0), says(0), acquire, look, says(0), another, look},                       // the longest stays
		{flush, says(time.Hour), says(0), says(-time.Hour), says(0)},                           // the earliest clock stays
		{marked(process, -time.Minute, 0), says(0), marked(process, time.Hour, 0), join, join}, // a marker of the future
		{marked("another", -time.Minute, 0), says(0), marked(process, -time.Minute, time.Hour), join, join},
		{acquire, as(another, 2), look, as(another, 1), look, as(another, 2), look, release, another, as(another, 3), as(another, 2), look, as(another, 1), look},
		{acquire, as(another, 2), as(another, 3), release, as(another, 1), look}, // a lower ticket that was not in this queue before
		{acquire, as(another, 2), release, ours, look, call(wire.Release, yours), leave(1), look, leave(2), another, look},
		{acquire, as(another, 1), leave(1), as(another, 2), release, another, leave(2), leave(2), another, look},
		{acquire, as(another, 1), as(acquire, 2), flush, join, release, as(another, 1), look},
		{call(wire.Set, mine), acquire, look, raise(mine, 0), look, another, call(wire.Set, yours)},
		{listen, acquire, first, release, look, another, as(another, 0), look, first, look, heard, call(wire.Release, yours), look},
		{acquire, first, second, release, look, listen, second, first, look, heard},           // no subscriber
		{listen, acquire, first, heard, release, look, listen, first, release, second, heard}, // no subscriber any more
		{listen, acquire, first, second, third, release, leave(1), look, third, second, look, heard, call(wire.Release, yours), third, look, heard},
		{listen, acquire, first, second, release, leave(2), look, leave(1), look, heard},
		{listen, acquire, first, second, release, first, look, raise(yours, time.Hour), look, call(wire.Extend, yours), call(wire.Release, yours), heard},
		{listen, acquire, dead, second, third, release, look, heard},
		{acquire, breaks, look, breaks, acquire, extend, look, release, another, call(wire.Extend, yours), breaks, look}, // it comes again, and is not extended
		{listen, acquire, first, breaks, look, first, heard, extend, look},
		{listen, acquire, shared, second, release, look, heard},
		{listen, below, notBelow, acquire, first, second, release, look, heard},
		{listen, acquire, third, second, release, third, second, look, yield, look, third, heard},
		{listen, acquire, first, second, release, first, look, yield, look, heard},
		{listen, acquire, first, flush, join, acquire, second, release, look, flush, second, heard},
		{plain, look, plain, raise(mine, us), extend, plain2, look, release, plain2, look, number(plain, time.Second/4)},
		{plain, release, number(plain2, -time.Second), look, call(wire.Release, yours), number(plain2, -100*time.Millisecond), call(wire.Release, yours), plain},
		{noTable, number(plain, -time.Second), look}, // far behind the node's clock
		{acquire, flushScripts, raise(mine, us), flushScripts, raise(mine, us), flushScripts, raise(mine, us), flushScripts, extend, look},
		{flushScripts, plain, look, join, plain, release, flush, plain, look, flushScripts, flush, plain},
		{flushScripts, plain, call(wire.Extend, mine), release, flushScripts, plain2, look, flushScripts, plain},
		{below, plain2, call(wire.Release, "token.b.@a@@"), number(plain2, time.Second/4), notBelow, look, number(plain2, time.Second/3), flush, join, plain},
		{below, notBelow, plain, release, number(plain2, time.Second/4), look},

		// A node that keeps no description keeps one if it is told which node it is, and then only later ones of
		// the same set.
		{told("", "S", 1), told(name, "S", 1), told("another's", "S", 1), told(name, "T", 2), told("", "S", 2), told(name, "S", 1), join, flush, told("", "S", 2), told(name, "T", 3), told("", "S", 3)},
		// It has lost its data once more, and the one who tells it does not know; or it has taken the description.
		{told(name, "S", 1), flush, told(name, "S", 1), told(name, "S", 1)},
		{flush, join, knows("older", told(name, "S", 1)), knows("another's", told(name, "S", 1)), knows("", told(name, "S", 1)), told(name, "S", 1)},
		{flush, choose(1, 2, first1), knows("older", told(name, "T", 1)), knows("older", told("", "S", 1)), knows("older", told(name, "S", 1)), join},
		{flush, choose(1, 2, first1), knows("", told(name, "S", 1))},
		{choose(1, 2, first1), choose(1, 3, nil), knows("", told(name, "S", 1)), flush, choose(1, 2, first2), choose(1, 3, nil), knows("", told(name, "S", 1)), knows("", told(name, "T", 1))},
		// The marker moves, and with it what has to be known for a grant; a marker that is of another process, or
		// of the future, is a new one there, too.
		{acquire, told(name, "S", 1), raise(mine, us), look, told(name, "S", 2), extend, look, acquire, release, another, first, plain, look, told(name, "S", 3), look, plain2},
		{flush, says(0), told(name, "S", 2), says(-time.Hour), says(0), plain, look, release, plain2, join},
		{marked("another", -time.Minute, 0), told(name, "S", 2), told(name, "S", 3)},
		{marked(process, time.Hour, 0), told(name, "S", 3), acquire, look},
		{told(name, "S", 2), listen, acquire, first, second, release, look, first, look, heard},
		{told(name, "S", 2), flushScripts, plain, acquire, look, flush, acquire, look},
		// A choice: promises, a smaller ballot, what was taken, a larger one; one for an epoch that is not the next;
		// and a description ends it.
		{choose(1, 2, nil), choose(1, 1, nil), choose(1, 2, nil), choose(1, 1, first1), choose(1, 2, first1), choose(1, 2, nil), choose(1, 1, first2), choose(1, 3, nil), choose(1, 3, first2), choose(1, 3, nil), told(name, "S", 1), choose(1, 4, nil), choose(2, 1, nil)},
		{choose(2, 2, nil), choose(0, 2, nil), choose(2, 2, first1), told(name, "S", 1), choose(2, 1, nil), choose(2, 2, described("S", 2)), choose(3, 3, nil), told("", "S", 3), choose(2, 9, nil), choose(4, 1, nil)},
		{told(name, "T", 1), choose(2, 1, nil), choose(2, 1, described("S", 2)), choose(1, 1, nil)},
		{choose(1, 2, first1), flush, choose(1, 1, nil), choose(1, 1, first2), join, choose(1, 3, nil)},
		// A node that is to become a member has lost nothing since it noted that; or it has, or it becomes one by another one.
		{flush, join, comes(described("S", 2)), told(name, "S", 2), choose(3, 2, nil), flush, join, told(name, "S", 2), choose(3, 2, nil)},
		{flush, join, comes(described("S", 2)), told(name, "S", 3), choose(4, 2, nil)},
		{flush, join, comes(described("S", 2)), flush, join, told(name, "S", 2), choose(3, 2, nil)},
		{flush, comes(described("S", 2)), join, told(name, "S", 2), choose(3, 2, nil)},
		// A request that was on its way since before the node lost its data.
		{flush, join, knows("right", comes(described("S", 2))), told(name, "S", 2), choose(3, 2, nil)},
		{flush, join, knows("older", comes(described("S", 2))), told(name, "S", 2), choose(3, 2, nil)},
		{flush, join, knows("older", choose(1, 2, first1)), choose(1, 3, nil), knows("right", choose(1, 4, first1)), knows("older", choose(1, 5, nil)), told(name, "S", 1), choose(2, 2, nil)},
		{flush, join, comes(described("S", 2)), marked("another", -time.Minute, 0), told(name, "S", 2), choose(3, 2, nil)},
		{marked("another", -time.Minute, 0), comes(described("S", 2)), knowing(marked("another", -time.Minute, 0), told(name, "S", 2)), choose(3, 2, nil)},
		{flush, join, comes(described("S", 2)), marked(process, -time.Minute, 0), told(name, "S", 2), choose(3, 2, nil)},
		{told(name, "S", 1), comes(described("S", 2)), told(name, "S", 2), choose(3, 2, nil)},
		{flush, join, comes(described("S", 2)), choose(1, 2, nil), told(name, "S", 2), choose(3, 2, nil)},
		{below, notBelow, acquire, merge(), merge("1", "5", a), merge(), merge("1", "9007199254740000", a, "7", a), merge(), look, release, another, look, merge("0", "9007199254740001", a), merge(), raise(yours, 0)},
		{acquire, first, second, release, plain, look, leave(1), leave(2), call(wire.Release, yours), number(plain2, time.Second/4), look},
	}
	// More readers wait than the window holds.
	crowd := []step{listen, acquire}
	reader := func(n int) step {
		s := as(call(wire.Acquire, fmt.Sprint("token.r.@a@@", n, ".@a@@")), n)
		s.call.Modes, s.call.TTL = "s", time.Hour
		return s
	}
	for n := range wire.QueueWindow + 3 {
		crowd = append(crowd, reader(n))
	}
	crowd = append(crowd, release, heard, listen, reader(wire.QueueWindow+1), reader(7), reader(wire.QueueWindow+1), reader(wire.QueueWindow), reader(200), look, heard)
	all = append(all, crowd)
	if virtual {
		const half, whole = 13 * time.Hour, 26 * time.Hour
		all = append(all, [][]step{
			{acquire, after(half, extend), after(half, look), release, another, look},
			{acquire, after(half, raise(mine, 0)), after(half, look), release, another, look},
			{acquire, after(half, acquire), after(half, look)},
			{acquire, after(whole, look), extend, look, raise(mine, 0), look},
			{acquire, after(whole, acquire), look},
			{acquire, release, after(whole, look), another, look},
			{acquire, as(another, 1), release, after(2*time.Second, another), after(time.Second-10*time.Millisecond, another), after(20*time.Millisecond, another), look},
			{acquire, as(another, 1), after(2*time.Second, as(another, 2)), after(2*time.Second, release), another, look, as(another, 2), look},
			{acquire, as(another, 1), after(2*time.Second, as(another, 1)), release, after(2*time.Second, another), after(2*time.Second, another)},
			{acquire, as(another, 1), after(time.Minute-10*time.Millisecond, look), after(20*time.Millisecond, look)},
			{listen, acquire, first, second, after(2*time.Second, second), after(2*time.Second, release), look, second, look, heard},
			{listen, acquire, first, after(2*time.Second, second), after(2*time.Second, release), look, heard},
			{acquire, release, after(60*24*time.Hour, look), another, look},
		}...)
	}
	return all
}
