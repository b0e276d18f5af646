package chaos

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestModelRepeats: a seed gives one history, with any number of processors, and in this process, which the race
// detector may slow down, as in one without it.
func TestModelRepeats(t *testing.T) {
	seeds := 6
	if testing.Short() {
		seeds = 2
	}
	other := filepath.Join(t.TempDir(), "convict")
	build := exec.CommandContext(t.Context(), "go", "build", "-race=false", "-o", other, "./internal/convict")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build.Args, err, out)
	}
	for _, s := range Scenarios {
		n := seeds
		if s.Weight > 10 {
			n = 1
		}
		var here bytes.Buffer
		for seed := range n {
			h, _, err := Model.Replay(s, uint64(seed), nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := h.Write(&here); err != nil {
				t.Fatal(err)
			}
		}
		for _, procs := range []int{1, 2, 7} {
			run := exec.CommandContext(t.Context(), other, Model.Name, s.Name, "1", strconv.Itoa(n), "histories")
			run.Env = append(os.Environ(), fmt.Sprint("GOMAXPROCS=", procs))
			run.Stderr = os.Stderr
			there, err := run.Output()
			if err != nil {
				t.Fatal(err)
			}
			if a, b, differ := parting(here.Bytes(), there); differ {
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
	n := 3000
	if testing.Short() {
		n = 400
	}
	for _, f := range (&Campaign{Arena: Model, Schedules: n, Seed: 1}).Run(t.Context()) {
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
	for line := range strings.Lines(string(list)) {
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
