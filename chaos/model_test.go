package chaos

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// histories are those of a scenario's first seeds, as text.
func histories(t *testing.T, s *Scenario, seeds int) []byte {
	t.Helper()
	var text bytes.Buffer
	for seed := range seeds {
		h, _, err := Model.Replay(s, uint64(seed), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Write(&text); err != nil {
			t.Fatal(err)
		}
	}
	return text.Bytes()
}

// TestModelRepeats: a seed gives one history, with any number of processors.
func TestModelRepeats(t *testing.T) {
	if need.Sized(false, true, true) {
		need.Elsewhere(t, "TestModelRepeatsElsewhere compares more")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for i, s := range Scenarios {
		if s.Weight > 10 || !need.Sample(i, 8) {
			continue
		}
		runtime.GOMAXPROCS(1)
		one := histories(t, s, 1)
		runtime.GOMAXPROCS(7)
		if a, b, differ := parting(one, histories(t, s, 1)); differ {
			t.Errorf("%s: on one processor it is\n%s\nand on seven\n%s", s.Name, a, b)
		}
	}
}

// TestModelRepeatsWithNewConnections: in this schedule lanes get new connections for some that could not connect.
func TestModelRepeatsWithNewConnections(t *testing.T) {
	at := slices.IndexFunc(Scenarios, func(s *Scenario) bool { return s.Name == "members" })
	digests := make(map[string]bool)
	for range 4 {
		h, _, err := Model.Replay(Scenarios[at], 12, nil)
		if err != nil {
			t.Fatal(err)
		}
		digests[h.Digest()] = true
	}
	if len(digests) != 1 {
		t.Errorf("four runs of one seed have the digests %v", slices.Collect(maps.Keys(digests)))
	}
}

// TestModelRepeatsElsewhere: a seed gives one history in this process, which the race detector
// may slow down, and in one without it.
func TestModelRepeatsElsewhere(t *testing.T) {
	need.Full(t) // it builds the other program
	seeds := need.Sized(1, 1, 50)
	other := filepath.Join(t.TempDir(), "convict")
	build := exec.CommandContext(t.Context(), "go", "build", "-race=false", "-o", other, "./internal/convict")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build.Args, err, out)
	}
	for i, s := range Scenarios {
		n := seeds
		if s.Weight > 10 {
			n = 1
		}
		here := histories(t, s, n)
		numbers := []int{1, 2, 7} // of processors there
		if need.Sized(true, true, false) {
			numbers = numbers[i%3:][:1] // each with other scenarios
		}
		for _, procs := range numbers {
			run := exec.CommandContext(t.Context(), other, Model.Name, s.Name, "1", strconv.Itoa(n), "histories")
			run.Env = append(os.Environ(), fmt.Sprint("GOMAXPROCS=", procs))
			run.Stderr = os.Stderr
			there, err := run.Output()
			if err != nil {
				t.Fatal(err)
			}
			if a, b, differ := parting(here, there); differ {
				t.Errorf("%s: here is\n%s\nand in another process, on %d processors,\n%s", s.Name, a, procs, b)
			}
		}
	}
}

// parting returns the first line in which two texts differ.
func parting(a, b []byte) (inA, inB []byte, differ bool) {
	if bytes.Equal(a, b) {
		return nil, nil, false
	}
	for {
		inA, a, _ = bytes.Cut(a, []byte("\n"))
		inB, b, _ = bytes.Cut(b, []byte("\n"))
		if !bytes.Equal(inA, inB) || len(a) == 0 || len(b) == 0 {
			return inA, inB, true
		}
	}
}

// TestModelSchedules runs some schedules of every scenario; CI runs many more.
func TestModelSchedules(t *testing.T) {
	scenarios := slices.Clone(Scenarios)
	if need.Sized(true, false, false) {
		scenarios = slices.DeleteFunc(scenarios, func(s *Scenario) bool { return s.Weight > 6 })
	}
	n := need.Sized(2, 100, 10_000)
	for _, f := range (&Campaign{Arena: Model, Scenarios: scenarios, Schedules: n, Seed: 1}).Run(t.Context()) {
		if f.Error != nil {
			t.Errorf("%s: %v", f.Scenario, f.Error)
		}
		if f.Violations == 0 {
			continue
		}
		t.Errorf("%s: %s; %s", f.Scenario, f.Outcome(), f.Replay)
		for _, s := range f.Shown {
			for _, v := range s.Verdict.Violations {
				t.Logf("seed %d: %v", s.History.Run.Seed, v)
			}
		}
	}
}

// TestRegressions runs the seeds that once showed an error.
func TestRegressions(t *testing.T) {
	list, err := os.ReadFile(filepath.Join("testdata", "regressions.txt"))
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	for line := range strings.Lines(string(list)) {
		if at++; !need.Sample(at, 5) {
			continue
		}
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Split(strings.TrimSpace(line), ",")
		if len(fields) != 2 {
			continue
		}
		seed, err := strconv.ParseUint(strings.TrimSpace(fields[1]), 10, 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		found := false
		for _, s := range Scenarios {
			if s.Name != fields[0] {
				continue
			}
			found = true
			_, verdict, err := Model.Replay(s, seed, nil)
			if err != nil || !expects(s, verdict) {
				t.Errorf("%s, seed %d: %v %v", s.Name, seed, err, verdict.Violations)
			}
		}
		if !found {
			t.Errorf("%q: there is no such scenario", line)
		}
	}
}

// TestRoomsOfLanes: the scenario does what its name promises. In each schedule more than ten members are replaced, no
// change fails, some members are dead by then, and some clients keep one renewed lock for more than ten replacements.
func TestRoomsOfLanes(t *testing.T) {
	i := slices.IndexFunc(Scenarios, func(s *Scenario) bool { return s.Name == "rooms of lanes" })
	kept, dead := 0, 0
	for seed := range uint64(need.Sized(1, 3, 20)) {
		h, _, err := Model.Replay(Scenarios[i], seed, nil)
		if err != nil {
			t.Fatal(err)
		}
		removed := 0
		holds := make(map[[2]int]int) // by client and op: how many members were removed before
		for _, e := range h.Events {
			switch at := [2]int{e.Client, e.Op}; {
			case e.Kind == history.Changed && e.Error != "":
				t.Errorf("seed %d: %s: %s", seed, e.Name, e.Error)
			case e.Kind == history.Changed && strings.HasPrefix(e.Name, "remove "):
				removed++
			case e.Kind == history.Struck:
				dead++
			case e.Kind == history.Got:
				holds[at] = removed
			case e.Kind == history.Release && removed-holds[at] > 10:
				kept++
			}
		}
		if removed <= 10 {
			t.Errorf("seed %d: %d members were replaced", seed, removed)
		}
	}
	if kept == 0 || dead == 0 {
		t.Errorf("%d locks were kept for more than ten replacements, and %d members died", kept, dead)
	}
}

// TestSetsThatMove: the scenario does what its name promises. In some schedules the set has moved away from all its first
// nodes, is lost until an operator restores it, or is made anew; a member and another node came up with a copy of another's data; and a client that has
// slept through more than three changes got a lock afterwards.
func TestSetsThatMove(t *testing.T) {
	need.Full(t) // what it looks for is rare
	i := slices.IndexFunc(Scenarios, func(s *Scenario) bool { return s.Name == "sets that move" })
	seen := make(map[string]int)
	for seed := range uint64(need.Sized(20, 20, 200)) {
		h, _, err := Model.Replay(Scenarios[i], seed, nil)
		if err != nil {
			t.Fatal(err)
		}
		reached := make(map[string]bool)
		first := h.Run.Members
		members, epoch, changes := []string(nil), 1, 0
		for n := range first {
			members = append(members, fmt.Sprint("node", n))
		}
		slept := make(map[int]int) // by client: how many changes there were when it fell asleep, plus one
		for _, e := range h.Events {
			switch {
			case e.Kind == history.Changed && e.Error == "":
				members = strings.Fields(e.Also)
				reached["moved"] = reached["moved"] || !slices.ContainsFunc(members, func(m string) bool { return m < fmt.Sprint("node", first) })
				reached["made anew"] = reached["made anew"] || e.Value <= epoch
				epoch = e.Value
				changes++
			case e.Kind == history.Struck && e.Fault.Kind == history.Copy && slices.Contains(members, fmt.Sprint("node", e.Fault.Node)):
				reached["a member is a copy"] = true
			case e.Kind == history.Struck && e.Fault.Kind == history.Copy:
				reached["another node is a copy"] = true
			case e.Kind == history.Held:
				slept[e.Client] = changes + 1
			case strings.Contains(e.Error, "nobody can know whether that was the last one"):
				reached["refused until an operator restores it"] = true
			case e.Kind == history.Got && slept[e.Client] > 0:
				reached["a sleeper is served"] = reached["a sleeper is served"] || changes+1-slept[e.Client] > 3
				slept[e.Client] = 0
			}
		}
		for what, is := range reached {
			if is {
				seen[what]++
			}
		}
	}
	t.Log(seen)
	for _, what := range []string{"moved", "refused until an operator restores it", "made anew", "a member is a copy", "another node is a copy", "a sleeper is served"} {
		if seen[what] == 0 {
			t.Errorf("no schedule has reached: %s", what)
		}
	}
}
