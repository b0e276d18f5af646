package linear

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorumlock/redlock/chaos"
)

// An id has a client and its op.
type id struct{ client, op int }

// A hold is a lock as its holder saw it.
type hold struct {
	name            string
	asked, from, to time.Duration
	until           time.Duration
	got             bool
	theirs          bool // the client is one of another library
}

// holds reads from a history which client relied on which lock, and when.
func holds(h *chaos.History) map[id]*hold {
	all := make(map[id]*hold)
	for _, e := range h.Events {
		who := id{e.Client, e.Op}
		o := all[who]
		switch e.Kind {
		case chaos.Ask:
			all[who] = &hold{name: e.Name, asked: e.At, to: math.MaxInt64, theirs: e.Verb == "plain"}
		case chaos.Got:
			o.got, o.from, o.until = true, e.At, e.Until
		case chaos.Extended, chaos.Renewed:
			o.until = max(o.until, e.Until)
		case chaos.Release, chaos.Told:
			o.until = max(o.until, e.Until)
			o.to = min(o.to, e.At)
		case chaos.Crashed:
			for who, o := range all {
				if who.client == e.Client {
					o.to = min(o.to, e.At)
				}
			}
		}
	}
	for who, o := range all {
		o.to = min(o.to, o.until)
		if !o.got {
			delete(all, who)
		}
	}
	return all
}

// random makes a history of clients that take turns with two locks, with errors: the more careless
// they are, the more often one gets a lock too early, or holds it too long.
func random(seed uint64) *chaos.History {
	rng := rand.New(rand.NewPCG(seed, 7))
	h := &chaos.History{Run: chaos.Head{Scenario: "random", Seed: seed, Clients: 4}}
	h.Run.Forgetful = rng.IntN(3) == 0
	upTo := func(n int) time.Duration { return time.Duration(rng.IntN(n)) }
	careless := []int{0, 0, 2, 10, 40, 80}[rng.IntN(6)] // percent
	slips := func() bool { return rng.IntN(100) < careless }
	free := make(map[string]time.Duration)
	busy := make(map[int]time.Duration)
	ops := make(map[int]int)
	for range 5 + rng.IntN(20) {
		name, client := string(rune('a'+rng.IntN(2))), 1+rng.IntN(4)
		ops[client]++
		add := func(at time.Duration, e chaos.Event) {
			e.At, e.Client, e.Op, e.Name = at, client, ops[client], name
			h.Events = append(h.Events, e)
		}
		asked := busy[client] + upTo(10)
		verb := "acquire"
		if client > 2 && h.Run.Forgetful {
			verb = "plain"
		}
		add(asked, chaos.Event{Kind: chaos.Ask, Verb: verb})
		got := max(asked, free[name]) + upTo(4)
		if slips() {
			got = asked + upTo(10)
		}
		if rng.IntN(12) == 0 {
			add(got, chaos.Event{Kind: chaos.Denied})
			busy[client] = got
			continue
		}
		until := got - 2 + upTo(30) // some are over before they begin
		add(got, chaos.Event{Kind: chaos.Got, Token: fmt.Sprint(len(h.Events)), Until: until})
		now := got
		for range rng.IntN(4) {
			now += upTo(8)
			if now >= until && !slips() {
				break
			}
			switch rng.IntN(4) {
			case 0:
				until += upTo(20)
				add(now, chaos.Event{Kind: chaos.Extend})
				add(now, chaos.Event{Kind: chaos.Extended, Until: until})
			case 1:
				until += upTo(20)
				add(now, chaos.Event{Kind: chaos.Renewed, Until: until})
			default:
				add(now, chaos.Event{Kind: chaos.Read})
				now += 1 + upTo(12)
				if now < until || slips() {
					add(now, chaos.Event{Kind: chaos.Wrote})
				}
			}
		}
		now += upTo(6)
		end := chaos.Event{Kind: chaos.Release, Until: until}
		if rng.IntN(3) == 0 {
			now = max(now, until)
			end.Kind = chaos.Told
		}
		add(now, end)
		busy[client] = now + 1
		free[name] = max(free[name], min(now, until))
	}
	slices.SortStableFunc(h.Events, func(a, b chaos.Event) int { return cmp.Compare(a.At, b.At) })
	count(h)
	return h
}

// count fills in the clients' reads and writes.
func count(h *chaos.History) {
	values, read := make(map[string]int), make(map[id]int)
	for i := range h.Events {
		e := &h.Events[i]
		switch e.Kind {
		case chaos.Read:
			e.Value = values[e.Name]
			read[id{e.Client, e.Op}] = e.Value
		case chaos.Wrote:
			e.Was, e.Value = values[e.Name], read[id{e.Client, e.Op}]+1
			values[e.Name] = e.Value
		}
	}
}
