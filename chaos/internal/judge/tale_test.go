package judge

import (
	"fmt"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
)

// generate makes a history from a few bytes: most of it is possible, and now and then an event is
// not. Only time never goes back.
func generate(data []byte) *history.History {
	t := &teller{data: data, values: make(map[string]int)}
	t.Run = history.Head{Lag: t.time(4), Look: t.time(4), Overlap: t.time(2) * t.time(3), Bound: t.time(10), Clients: 1 + t.below(3), Always: t.below(2) == 0, Exact: t.below(2) == 0}
	t.Run.Nodes, t.Run.Quorum = 3, 2+t.below(2)
	t.Run.Settle, t.Run.Idle, t.Run.Slight, t.Run.Grace, t.Run.TTL = t.time(6), t.time(12), t.time(3), t.time(4), t.time(8)
	t.Run.MostKeys, t.Run.MostBytes, t.Run.MostRequests = t.below(5), t.below(5), t.below(5)
	t.Run.Settled = t.Run.MostBytes%2 == 1 // not drawn: the corpus would mean something else
	t.Run.Planned = t.Run.MostKeys%2 == 1
	t.Run.Forgetful = t.Run.MostRequests%2 == 1
	t.kinds = t.below(2) == 0
	if t.kinds && t.below(4) > 0 {
		t.Run.Separator = "/"
	}
	rare := 1 + t.below(40) // the larger, the fewer impossible events
	for len(t.data) > 0 && len(t.Events) < 120 {
		t.now += []time.Duration{0, 0, 1, 1, 2, 3, 4, 7}[t.below(8)]
		switch {
		case t.below(rare) == 0 && rare < 30:
			t.anything()
		case t.below(10) == 0:
			t.fate()
		default:
			t.act(&t.clients[t.below(len(t.clients))])
		}
	}
	return &t.History
}

type teller struct {
	history.History
	data    []byte
	now     time.Duration
	clients [4]acting
	values  map[string]int
	struck  []history.Fault
	kinds   bool // with locks of all kinds
}

// An acting client does one step after the other.
type acting struct {
	number, op         int
	want               history.Request
	asked, has, told   bool
	extends, releasing bool
	until              time.Duration
	read               int
}

// below draws from the bytes that are left; when there are none, it is 0.
func (t *teller) below(n int) int {
	if len(t.data) == 0 {
		return 0
	}
	b := t.data[0]
	t.data = t.data[1:]
	return int(b) % n
}

func (t *teller) time(n int) time.Duration { return time.Duration(t.below(n)) }

func (t *teller) add(e history.Event) {
	e.At = t.now
	t.Events = append(t.Events, e)
}

// act is the next step of a client.
func (t *teller) act(c *acting) {
	for i := range t.clients {
		if c == &t.clients[i] {
			c.number = i + 1
		}
	}
	e := history.Event{Client: c.number, Op: c.op, Name: c.want.Name}
	choice := t.below(12)
	switch {
	case !c.asked:
		*c = acting{number: c.number, op: c.op + 1, want: t.want(), asked: true}
		e = c.want.Fill(history.Event{Kind: history.Ask, Client: c.number, Op: c.op, Limit: t.time(20)})
		e.Verb = []string{"acquire", "try", "do", "acquire", "plain", "acquire"}[t.below(6)]
		e.Why = []string{"", "", "renewed"}[t.below(3)]
	case !c.has && choice == 0:
		e.Kind, e.Why, c.asked = history.Denied, "held", false
	case !c.has:
		c.has, c.until = true, t.now+t.time(15)
		e = c.want.Fill(e)
		e.Kind, e.Until, e.Token, e.Fence = history.Got, c.until, fmt.Sprintf("t%d.%d", c.number, c.op), uint64(t.below(5))
		if t.below(30) == 0 {
			e.Token = ""
		} else if t.below(10) == 0 {
			e.Token = "t1.1"
		}
	case c.releasing:
		e.Kind, c.asked = history.Released, false
		if t.now > c.until && t.below(4) > 0 {
			e.Error, e.Why = "lost", "lost"
		}
	case c.extends && choice < 6:
		c.extends, c.until = false, c.until+t.time(15)
		e.Kind, e.Until = history.Extended, c.until
	case c.extends && choice == 6:
		e.Kind, c.extends = history.Failed, false
	case choice == 0 && !c.told:
		c.told = true
		e.Kind, e.Why, e.Until = history.Told, []string{"lost", "cancelled"}[t.below(2)], max(0, t.now-1+t.time(4))
	case choice == 1 && !c.extends:
		e.Kind, e.Limit, c.extends = history.Extend, t.time(10), true
		e.Verb = []string{"", "hand on"}[t.below(2)]
	case choice == 2:
		c.until += t.time(10)
		e.Kind, e.Until = history.Renewed, c.until
	case choice == 3, choice == 4:
		c.read = t.values[c.want.Name]
		e.Kind, e.Value = history.Read, c.read
	case choice == 5, choice == 6:
		e.Kind, e.Was, e.Value, e.Fence = history.Wrote, t.values[c.want.Name], c.read+1, uint64(t.below(4))
		t.values[c.want.Name] = e.Value
	case choice == 7 && t.below(2) == 0:
		e.Kind, e.Value, e.Was = history.Found, 1+t.below(3), t.below(2)
	case choice == 7:
		e.Kind, e.Value = history.Refused, c.read+1
	default:
		c.releasing = true
		e.Kind, e.Limit, e.Until = history.Release, t.time(10), c.until-t.time(4)
	}
	t.add(e)
}

// want draws a request: a or b, or something that may conflict with either.
func (t *teller) want() history.Request {
	if !t.kinds {
		return history.Request{Name: string(rune('a' + t.below(2)))}
	}
	return []history.Request{
		{Name: "a"}, {Name: "a"}, {Name: "b"}, {Name: "a", Shared: true}, {Name: "a", Shared: true}, {Name: "a", Slots: 2}, {Name: "a", Slots: 2}, {Name: "a", Slots: 1},
		{Name: "a/b"}, {Name: "a/b", Shared: true}, {Name: "a/c", Also: "b"}, {Name: "a/b/c", Also: "a/c a/b", Shared: true}, {Name: "ab"}, {Name: "a/b", Slots: 2},
		{Name: "b", Also: "a"}, {Name: "b", Slots: 3},
	}[t.below(16)]
}

// fate draws what happens to clients and nodes.
func (t *teller) fate() {
	client := 1 + t.below(4)
	switch t.below(9) {
	case 8:
		of := t.clients[client%len(t.clients)]
		e := history.Event{Kind: history.Break, Client: client, Op: 20 + t.below(60), Name: "a", Token: fmt.Sprintf("t%d.%d", of.number, of.op), Limit: t.time(12)}
		t.add(e)
		if t.below(4) > 0 {
			e.Kind, e.Until, e.Why = history.Broke, t.now+t.time(6), []string{"", "", "lost", "no quorum"}[t.below(4)]
			t.add(e)
		}
	case 0, 1, 2, 3:
		t.add(history.Event{Kind: history.Held, Client: client, Until: t.now + t.time(12), Why: []string{"", "suspended"}[t.below(2)]})
	case 4:
		t.add(history.Event{Kind: history.Crashed, Client: client})
		t.clients[client-1].asked = t.below(3) == 0
	case 5:
		t.add(history.Event{Kind: history.Calm})
	case 6:
		t.inject()
	case 7:
		switch t.below(8) {
		case 0:
			t.add(history.Event{Kind: history.Left, Error: "key"})
		case 1, 2:
			t.add(history.Event{Kind: history.Stalled, Value: t.below(3), Until: t.now + t.time(12)})
		case 3:
			t.add(history.Event{Kind: history.Measured, Error: "steal"})
			t.add(history.Event{Kind: history.Lost, Until: t.now + t.time(12)})
		case 6:
			t.add(history.Event{Kind: history.Changing, Client: client, Op: 1 + t.below(9), Name: "add node3", Limit: t.time(12)})
		case 7:
			t.add(history.Event{Kind: history.Changed, Client: client, Op: 1 + t.below(9), Name: "add node3", Value: 2})
		case 4, 5:
			t.add(history.Event{Kind: history.Weighed, Client: t.below(2), Weight: &history.Weight{Node: t.below(3), Keys: t.below(6), Bytes: t.below(6), Requests: t.below(6)}})
		}
	}
}

// inject begins a fault, or ends the first one that has not ended.
func (t *teller) inject() {
	if len(t.struck) > 0 && t.below(2) == 0 {
		t.add(history.Event{Kind: history.Healed, Fault: &t.struck[0]})
		t.struck = t.struck[1:]
		return
	}
	f := history.Fault{At: t.now, Kind: []history.FaultKind{history.Kill, history.Slow, history.Hang, history.Mute, history.Crash, history.Flush, history.LoseReplies, history.Skew}[t.below(8)], Node: t.below(3), For: t.time(4), By: t.time(4)}
	t.struck = append(t.struck, f)
	t.add(history.Event{Kind: history.Struck, Fault: &f})
}

// anything draws an event without regard to those before it.
func (t *teller) anything() {
	kinds := []history.Kind{
		history.Ask, history.Got, history.Denied, history.Extend, history.Extended, history.Failed, history.Renewed, history.Release, history.Released, history.Told, history.Read, history.Wrote, history.Refused,
		history.Crashed, history.Held, history.Struck, history.Healed, history.Calm, history.Left, history.Found, history.Stalled, history.Lost, history.Measured, history.Weighed, history.Changing, history.Changed, history.Break, history.Broke, "", "sung",
	}
	e := history.Event{Kind: kinds[t.below(len(kinds))], Client: t.below(6), Op: t.below(5)}
	e.Name = []string{"a", "b", ""}[t.below(3)]
	if t.kinds {
		e.Also, e.Shared, e.Slots = []string{"", "a/b"}[t.below(2)], t.below(4) == 0, t.below(4)-1
	}
	e.Verb = []string{"acquire", "sing", "do", "", "hand on"}[t.below(5)]
	e.Token = []string{"t1.1", "x", ""}[t.below(3)]
	e.Why = []string{"lost", "", "refused"}[t.below(3)]
	e.Until, e.Limit = t.time(256), t.time(20)
	e.Value, e.Was, e.Fence = t.below(5), t.below(5), uint64(t.below(4))
	if t.below(2) == 0 {
		e.Fault = &history.Fault{Kind: history.Kill}
	}
	t.add(e)
}
