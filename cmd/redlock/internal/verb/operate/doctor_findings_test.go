package operate

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/peek"
	"github.com/quorumlock/redlock/cmd/redlock/internal/reach"
	"github.com/quorumlock/redlock/internal/facts"
	"github.com/quorumlock/redlock/internal/testbed/redistest/golden"
	"github.com/quorumlock/redlock/internal/wire"
)

var update = flag.Bool("update", false, "write the section of doctor in testdata/errors.golden of the command anew")

// TestFindingsGolden compares what doctor finds with the section of the command's golden file that lists it. With -update
// the section is written anew.
func TestFindingsGolden(t *testing.T) {
	const file, heading = "../../../testdata/errors.golden", "doctor: what it finds"
	g := new(strings.Builder)
	fmt.Fprintf(g, "\n## %s\n", heading)
	at := func(n int) string { return fmt.Sprintf("10.0.0.%d:6379", n) }
	fine := func(n int) *patient {
		p := &patient{name: at(n), given: true, info: facts.Facts{"redis_version": "7.2.0", "run_id": fmt.Sprint(n), "role": "master", "scripts:kept": "false"}, Pace: peek.Pace{Fastest: time.Millisecond, RoundTrip: time.Millisecond}, now: 1e15}
		p.opts = &redis.Options{Addr: p.name}
		return p
	}
	of := func(quarantine bool, all ...*patient) []finding {
		cfg := reach.Defaults
		x := &examination{patients: all, set: setOf(slices.DeleteFunc(slices.Clone(all), func(p *patient) bool { return !p.given })), ttl: cfg.TTL}
		x.count()
		return findings(x, &cfg, quarantine)
	}
	// find shows what doctor finds when the first of three nodes is changed.
	find := func(when string, quarantine bool, change func(p *patient)) {
		all := []*patient{fine(1), fine(2), fine(3)}
		change(all[0])
		fmt.Fprintf(g, "\n%s\n", when)
		for _, f := range of(quarantine, all...) {
			mark := "?"
			if f.must {
				mark = "!"
			}
			fmt.Fprintf(g, "    %s %s: %s\n      %s\n", mark, strings.Join(f.nodes, ", "), f.what, f.todo)
		}
	}
	for _, c := range []struct{ when, text string }{
		{"it does not answer", "connection refused"}, {"it refuses the password", "WRONGPASS invalid username-password pair"}, {"it refuses commands", "NOPERM no permissions"}, {"it is full", "OOM command not allowed"},
		{"it is read-only", "READONLY You can't write against a read only replica."}, {"it cannot write to its disk", "MISCONF Redis is configured to save RDB snapshots"}, {"it wants replicas", "NOREPLICAS Not enough good replicas to write."},
		{"a script runs", "BUSY Redis is busy running a script."}, {"it loads its data", "LOADING Redis is loading the dataset in memory"},
	} {
		find(c.when, true, func(p *patient) { p.err = fmt.Errorf("%s", c.text) })
	}
	info := func(key, value string) func(*patient) { return func(p *patient) { p.info[key] = value } }
	find("the same server twice", true, info("run_id", "2"))
	find("a replica", true, func(p *patient) {
		p.info["role"], p.info["master_host"], p.info["master_port"] = "slave", "10.0.0.9", "6379"
	})
	find("a node of a cluster", true, info("cluster_enabled", "1"))
	find("it evicts", true, func(p *patient) { p.info["maxmemory_policy"], p.info["maxmemory"] = "allkeys-lru", "1000000" })
	find("it would evict", true, func(p *patient) { p.info["maxmemory_policy"], p.info["maxmemory"] = "allkeys-lru", "0" })
	find("it has a replica", true, info("connected_slaves", "1"))
	find("it may forget, and there is no quarantine", false, func(*patient) {})
	find("it is too old", true, info("redis_version", "6.2.14"))
	find("it says nothing of itself", true, func(p *patient) { p.info = facts.Facts{"role": "master"} })
	find("its clock is ahead of the others'", true, func(p *patient) { p.Clock = time.Minute })
	find("its fences are ahead of the time", true, func(p *patient) { p.number = p.now + int64(24*time.Hour/time.Microsecond) })
	find("it is far away", true, func(p *patient) { p.RoundTrip = time.Second })
	find("it is not near", true, func(p *patient) { p.RoundTrip = 200 * time.Millisecond })
	find("it refuses to write a key", true, func(p *patient) { p.keyError = fmt.Errorf("NOPERM no permissions to run the 'eval' command") })
	find("it refuses to wake waiters", true, func(p *patient) { p.callError = fmt.Errorf("NOPERM no permissions to access a channel") })
	find("nodes on one host", true, func(p *patient) { p.opts = &redis.Options{Addr: "10.0.0.2:6380"} })
	// in has the nodes keep the description of one set, and the first of them something else.
	in := func(when string, members int, keeps func(d wire.Description) wire.Kept) {
		all := []*patient{fine(1), fine(2), fine(3)}
		d := wire.Description{MaxTTL: 10_000, Epoch: 3, Set: "one", Members: []string{at(1), at(2), at(3), at(4)}[:members]}
		for _, p := range all[1:] {
			p.keeping.Told = wire.Kept{Self: p.name, Description: &d}
		}
		all[0].keeping.Told = keeps(d)
		if members > len(all) {
			all = append(all, fine(members))
			all[members-1].given = false
		}
		fmt.Fprintf(g, "\n%s\n", when)
		for _, f := range of(true, all...) {
			fmt.Fprintf(g, "    %v %s: %s\n      %s\n", f.must, strings.Join(f.nodes, ", "), f.what, f.todo)
		}
	}
	in("it keeps no description", 3, func(wire.Description) wire.Kept { return wire.Kept{} })
	in("it keeps an earlier description", 3, func(d wire.Description) wire.Kept { d.Epoch = 2; return wire.Kept{Self: at(1), Description: &d} })
	in("it belongs to another set", 3, func(d wire.Description) wire.Kept { d.Set = "other"; return wire.Kept{Self: at(1), Description: &d} })
	in("a member was not given", 4, func(d wire.Description) wire.Kept { return wire.Kept{Self: at(1), Description: &d} })
	in("it was removed", 3, func(d wire.Description) wire.Kept { return wire.Kept{Self: at(9), Description: &d} })
	show := func(when string, all ...*patient) {
		fmt.Fprintf(g, "\n%s\n", when)
		for _, f := range of(true, all...) {
			fmt.Fprintf(g, "    ? %s: %s\n      %s\n", strings.Join(f.nodes, ", "), f.what, f.todo)
		}
	}
	// apart has the first node keep an early description of the set, the second one the last, and the third one something else.
	apart := func(when string, keeps func(first *wire.Description) *wire.Description) {
		all := []*patient{fine(1), fine(2), fine(3)}
		first := &wire.Description{MaxTTL: 10_000, Epoch: 1, Set: "one", Members: []string{at(1), at(2), at(3)}}
		for i, d := range []*wire.Description{first, first.Next().Next(), keeps(first)} {
			all[i].keeping.Told = wire.Kept{Self: at(i + 1), Description: d}
			if d != first {
				all[i].vote = &redlock.NodeError{Node: at(i + 1), Outcome: redlock.OutcomeIneligible, Err: errors.New("it keeps something else")}
			}
		}
		show(when, all...)
	}
	apart("one keeps a later description, and one keeps none", func(*wire.Description) *wire.Description { return nil })
	apart("one keeps a later description than the others", func(first *wire.Description) *wire.Description { return first })
	show("two nodes", fine(1), fine(2))
	show("four nodes", fine(1), fine(2), fine(3), fine(4))
	late := fine(1)
	late.Clock = -time.Second
	show("its clock is not this machine's", late)
	section, whole := golden.Section(t, file, heading)
	golden.Compare(t, file, strings.Replace(whole, section, g.String(), 1), *update, "go test ./cmd/redlock/internal/verb/operate -run TestFindingsGolden -update")
}
