package chaos

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/chaos/internal/judge"
	"github.com/quorumlock/redlock/chaos/internal/realarena"
	"github.com/quorumlock/redlock/chaos/internal/realtest"
	"github.com/quorumlock/redlock/internal/recording"
)

var (
	recorded   = flag.Int("recorded", 0, "how many schedules of the real arena TestRecordAgrees records, of all scenarios; 0: two")
	recordSeed = flag.Uint64("recorded-seed", 1, "the seed of each scenario's first one")
)

// TestRecordAgrees: what a record says of who held what when, the judge says, too.
func TestRecordAgrees(t *testing.T) {
	realtest.NeedServer(t)
	t.Parallel()
	c := &Campaign{Arena: Real, Scenarios: Real.Scenarios(), Schedules: *recorded, Seed: *recordSeed}
	if *recorded == 0 {
		c.Scenarios, _ = FindScenarios([]string{"waiting", "everything"})
		c.Schedules = len(c.Scenarios)
	}
	var mu sync.Mutex
	var sum, wrong agreement
	var group sync.WaitGroup
	room := make(chan struct{}, c.workers())
	for k := range c.order(c.Scenarios) {
		room <- struct{}{}
		group.Go(func() {
			defer func() { <-room }()
			p := Real.plan(c.Scenarios[k.scenario], c.Seed+uint64(k.number), nil, 0)
			right, tampered := recordOne(t, p)
			mu.Lock()
			defer mu.Unlock()
			sum.add(right)
			wrong.add(tampered)
			for _, text := range right.contradictions {
				t.Errorf("%s, seed %d: %s", p.Run.Scenario, p.Run.Seed, text)
			}
			if sum.schedules%50 == 0 {
				t.Log(&sum)
			}
		})
	}
	group.Wait()
	t.Log(&sum)
	if sum.seen == 0 || sum.missed > 2+sum.seen/20 {
		t.Errorf("the record has %d holds, and not %d that it should have", sum.seen, sum.missed)
	}
	if wrong.seen > sum.seen/2 {
		t.Errorf("of a record with other tokens, %d of %d holds agree", wrong.seen, sum.seen)
	}
}

// recordOne carries a plan out, records it, and compares the record with what the judge says; and so a record in
// which each lock has the token of the next one.
func recordOne(t *testing.T, p *Plan) (right, tampered *agreement) {
	file := filepath.Join(t.TempDir(), "record")
	var start time.Time
	h, err := realarena.RunBeside(p, func(names, servers []string, at time.Time) func() {
		start = at
		out, err := recording.Create(file, 1<<30)
		if err != nil {
			t.Error(err)
			return func() {}
		}
		rec := recording.New(out, p.Options.Prefix, 200*time.Millisecond)
		var nodes []recording.Node
		for i, addr := range servers {
			nodes = append(nodes, recording.Node{Name: names[i], Options: &redis.Options{Addr: addr}})
		}
		members := names
		if p.Run.Members > 0 {
			members = names[:p.Run.Members]
		}
		rec.Follow(recording.Set{Nodes: members, Quorum: p.Run.Quorum}, nodes)
		return func() {
			if err := rec.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	if err != nil {
		t.Errorf("%s, seed %d: %v", p.Run.Scenario, p.Run.Seed, err)
		return new(agreement), new(agreement)
	}
	changed(t, h, start, file)
	right = &agreement{schedules: 1}
	right.compare(t, h, start, file)
	tamper(t, h, file)
	tampered = new(agreement)
	tampered.compare(t, h, start, file)
	return right, tampered
}

// tamper puts the token of the next lock in the place of each in a record.
func tamper(t *testing.T, h *History, file string) {
	var tokens, pairs []string
	for _, hold := range judge.Holds(h) {
		tokens = append(tokens, hold.Token)
	}
	for i, token := range tokens {
		pairs = append(pairs, strconv.Quote(token), strconv.Quote(tokens[(i+1)%len(tokens)]))
	}
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, []byte(strings.NewReplacer(pairs...).Replace(string(text))), 0o600)
	}
	if err != nil {
		t.Error(err)
	}
}

// changed adds to a record what operators have changed about the set, and when.
func changed(t *testing.T, h *History, start time.Time, file string) {
	out, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Error(err)
		return
	}
	defer out.Close()
	for _, e := range h.Events {
		if e.Kind != Changed || e.Error != "" {
			continue
		}
		set := &recording.Set{Epoch: int64(e.Value), Nodes: strings.Fields(e.Also), Quorum: e.Was, Again: true}
		if err := json.NewEncoder(out).Encode(recording.Line{Time: start.Add(e.At), Set: set}); err != nil {
			t.Error(err)
		}
	}
}

// An agreement counts in what a record and the judge agree.
type agreement struct {
	schedules, holds, seen, short, missed, fences int
	late                                          []time.Duration // by how much later than the client the record has the beginning of a hold
	contradictions                                []string
}

func (a *agreement) add(o *agreement) {
	a.schedules += o.schedules
	a.holds += o.holds
	a.seen += o.seen
	a.short += o.short
	a.missed += o.missed
	a.fences += o.fences
	a.late = append(a.late, o.late...)
	a.contradictions = append(a.contradictions, o.contradictions...)
}

func (a *agreement) String() string {
	slices.Sort(a.late)
	at := func(q float64) time.Duration {
		if len(a.late) == 0 {
			return 0
		}
		return a.late[int(q*float64(len(a.late)-1))]
	}
	return fmt.Sprintf("%d schedules, %d holds: the record has %d, and not %d shorter than %v and %d others; %d with the fence that the client was given; it has the beginning after %v, and a tenth from %v on, a hundredth from %v on; %d contradictions",
		a.schedules, a.holds, a.seen, a.short, short, a.missed, a.fences, at(.5), at(.9), at(.99), len(a.contradictions))
}

// short is the length of a hold that a record may miss.
const short = 10 * time.Millisecond

// compare looks for each hold that the judge sees in the record. The record may be late by the arena's Lag, the
// processes that make it have to wait for a processor, too: but then in what it says there must be nothing that
// the judge does not say.
func (a *agreement) compare(t *testing.T, h *History, start time.Time, file string) {
	stories := make(map[string]*recording.Story)
	last := make(map[string]*recording.Hold) // by name, of the exclusive holds
	for _, hold := range judge.Holds(h) {
		a.holds++
		name := hold.Request.Name
		s := stories[name]
		if s == nil {
			var err error
			if s, err = recording.Read(file, name); err != nil {
				t.Error(err)
				return
			}
			stories[name] = s
		}
		from, to := start.Add(hold.From), start.Add(hold.To)
		middle := from.Add(to.Sub(from) / 2)
		alone := !hold.Request.Shared && hold.Request.Slots == 0
		contradicts := func(o *recording.Hold, why string) {
			a.contradictions = append(a.contradictions, fmt.Sprintf("from %v to %v client %d has %v by %s, and the record has %s from %v to %v: %s",
				hold.From, hold.To, hold.Client, hold.Request, hold.Token, o.Token, o.From.Sub(start), o.To.Sub(start), why))
		}
		for _, o := range s.Then(middle) {
			if alone && o.Mode == recording.ModeExclusive && o.Token != hold.Token && middle.Sub(o.From) > Real.Lag && (o.To.IsZero() || o.To.Sub(middle) > Real.Lag) {
				contradicts(o, "another lock at that time")
			}
		}
		i := slices.IndexFunc(s.Holds, func(o *recording.Hold) bool {
			return o.Token == hold.Token && o.From.Before(to.Add(Real.Lag)) && (o.To.IsZero() || o.To.After(from.Add(-Real.Lag)))
		})
		if i < 0 {
			if to.Sub(from) < short {
				a.short++
			} else {
				a.missed++
			}
			continue
		}
		a.seen++
		o := s.Holds[i]
		a.late = append(a.late, o.From.Sub(from))
		if o.Fence == int64(hold.Fence) {
			a.fences++
		}
		if before := last[name]; before != nil && alone && before.From.Sub(o.From) > Real.Lag {
			contradicts(o, "behind one that came later")
		}
		if alone {
			last[name] = o
		}
	}
	for name, s := range stories {
		for _, pair := range s.Unfenced {
			a.contradictions = append(a.contradictions, fmt.Sprintf("%q: the fence %d of %s, and later %d of %s", name, pair[0].Fence, pair[0].Token, pair[1].Fence, pair[1].Token))
		}
	}
}
