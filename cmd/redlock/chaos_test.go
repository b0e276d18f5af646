//go:build unix

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock/chaos"
	"github.com/quorumlock/redlock/cmd/redlock/internal/build"
	"github.com/quorumlock/redlock/cmd/redlock/internal/verb/trial"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// The programs of scripts are the test binary. Those that are clients of the real arena end
// here, before TestMain.
func init() {
	chaos.ClientMain()
	if every, err := time.ParseDuration(os.Getenv("PROGRESS")); err == nil {
		trial.LineEvery = every
	}
}

// add adds a scenario until the end of the test.
func add(t *testing.T, s *chaos.Scenario) {
	before := chaos.Scenarios
	chaos.Scenarios = append(slices.Clone(before), s)
	t.Cleanup(func() { chaos.Scenarios = before })
}

// hopeless is a scenario that no lock survives: nodes drop keys of locks that are held, and
// clients are suspended.
func hopeless() *chaos.Scenario {
	return &chaos.Scenario{
		Name: "broken nodes", About: "made up",
		Nodes: []int{3}, Clients: [2]int{4, 4}, TTL: []time.Duration{200 * time.Millisecond}, RTT: []time.Duration{time.Millisecond},
		Span: 4, Spread: 1, Rate: 40, Troubles: []chaos.Trouble{chaos.Evict, chaos.Evict, chaos.Suspend},
	}
}

// call is redlock chaos in this process.
func call(args ...string) (code int, stdout, stderr string) {
	var out, err strings.Builder
	code = main1(append([]string{"chaos"}, args...), os.Environ(), strings.NewReader(""), &out, &err)
	return code, out.String(), err.String()
}

func matches(t *testing.T, text, pattern string) {
	t.Helper()
	if !regexp.MustCompile(pattern).MatchString(text) {
		t.Errorf("no %q in\n%s", pattern, text)
	}
}

// Violations: what they are, how to see them again, and where they are kept.
func TestChaosViolations(t *testing.T) {
	need.Full(t)
	add(t, hopeless())
	dir := filepath.Join(t.TempDir(), "new", "bad")
	code, stdout, stderr := call("--arena", "model", "--scenario", "broken-nodes,calm", "--schedules", "40", "--seed", "1", "--save", dir)
	if code != 1 {
		t.Fatalf("exit code %d, stdout %s", code, stdout)
	}
	matches(t, stdout, `\nmodel +broken nodes +20 +\d+ +\d+ violations? `)
	matches(t, stdout, `\nmodel, broken nodes: \d+ violations?\n    seed \d+, at \S+, (exclusion|told): `)
	matches(t, stdout, `\nseed 1: \d+ violations? in 1 scenario: 40 schedules with \d+ holds in .*\n\z`)
	matches(t, stderr, `redlock: `+dir+`/model-broken-nodes-\d+.jsonl: at \S+, (exclusion|told): .*\nredlock:     replay: redlock chaos --arena model `)

	saved, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(saved) == 0 || strings.Count(stderr, "replay:") != len(saved) {
		t.Fatalf("saved %q, %v; stderr\n%s", saved, err, stderr)
	}
	// The command that it prints shows the same, and writes the same.
	m := regexp.MustCompile(`(?m)^    replay: redlock chaos (.*)$`).FindStringSubmatch(stdout)
	if m == nil {
		t.Fatal(stdout)
	}
	seed := regexp.MustCompile(`--seed (\d+)`).FindStringSubmatch(m[1])[1]
	text := regexp.MustCompile(`seed ` + seed + `, (at .*)`).FindStringSubmatch(stdout)[1]
	file := filepath.Join(t.TempDir(), "h.jsonl")
	args := strings.Fields(strings.Replace(m[1], `"broken nodes"`, "broken-nodes", 1))
	code, stdout, _ = call(append(args, "--history", file)...)
	if code != 1 || !strings.Contains(stdout, "\n    "+text+"\n        "+file+": lines ") {
		t.Errorf("exit code %d, and no %q in\n%s", code, text, stdout)
	}
	once, err1 := os.ReadFile(filepath.Join(dir, "model-broken-nodes-"+seed+".jsonl"))
	again, err2 := os.ReadFile(file)
	if err1 != nil || err2 != nil || string(once) != string(again) {
		t.Errorf("%v, %v: %d bytes are not the %d before", err1, err2, len(again), len(once))
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h, err := chaos.ReadHistory(f)
	if err != nil || !strings.Contains(stdout, "digest "+h.Digest()+"\n") {
		t.Errorf("%v: the digest is %s, and not in\n%s", err, h.Digest(), stdout)
	}
}

// What must fail is no fault, whether it has failed or has not been run often
// enough.
func TestChaosMustFail(t *testing.T) {
	need.Full(t)
	failing := hopeless()
	failing.Fails, failing.Because = []string{"exclusion", "told"}, "keys are dropped"
	add(t, failing)
	tame := hopeless()
	tame.Name, tame.Troubles, tame.Fails, tame.Because = "tame", nil, []string{"exclusion"}, "unknown"
	add(t, tame)
	dir := filepath.Join(t.TempDir(), "new")
	page := filepath.Join(dir, "report.html")
	code, stdout, stderr := call("--arena", "model", "--scenario", "broken nodes,tame", "--schedules", "40", "--seed", "1", "--report", page, "--save", dir)
	if code != 0 {
		t.Errorf("exit code %d, stderr %s", code, stderr)
	}
	matches(t, stdout, `\nmodel +broken nodes +20 +\d+ +failed, as it must `)
	matches(t, stdout, `\nmodel +tame +20 +\d+ +not shown `)
	matches(t, stdout, `\nmodel, broken nodes: failed, as it must: keys are dropped\n    seed \d+, at .*\n(    and \d+ more in that schedule\n)?    replay: redlock chaos --arena model --scenario "broken nodes" --seed \d+ --schedules 1\n`)
	matches(t, stdout, `no promise broken: .*; of 2 scenarios that must fail, 1 did\n\z`)
	text, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(text), "redlock chaos, seed 1") || !strings.Contains(string(text), "All promises kept") {
		t.Errorf("%v: the report has %d bytes", err, len(text))
	}
}

func TestChaosJSON(t *testing.T) {
	add(t, hopeless())
	n := need.Sized(2, 8, 8)
	schedules := strconv.Itoa(n)
	code, stdout, stderr := call("--arena", "model,miniredis", "--scenario", "calm,broken nodes", "--schedules", schedules, "--seed", "1", "--nodes", "3", "--json")
	var got struct {
		Verdict, Version string
		Seed             uint64
		Took             float64 `json:"took_ms"`
		Arenas           []struct {
			Name      string
			Schedules int
		}
		Findings []struct {
			Scenario, Arena, Outcome string
			OK                       bool
			Schedules, Violations    int
			Shown                    []struct {
				Seed           uint64
				Digest, Replay string
				Violations     []chaos.Violation
			}
		}
	}
	in := json.NewDecoder(strings.NewReader(stdout))
	if err := in.Decode(&got); err != nil || in.More() {
		t.Fatal(err, stdout)
	}
	if code != 1 || stderr != "" || got.Verdict != "violated" || got.Seed != 1 || got.Version != build.Line() || got.Took <= 0 {
		t.Errorf("exit code %d, stderr %q, %+v", code, stderr, got)
	}
	if len(got.Arenas) != 2 || got.Arenas[1].Name != "miniredis" || got.Arenas[1].Schedules != n || len(got.Findings) != 4 {
		t.Fatalf("%+v", got)
	}
	good, bad := got.Findings[0], got.Findings[1]
	if !good.OK || good.Outcome != "kept" || good.Schedules != n/2 || len(good.Shown) != 1 || good.Shown[0].Violations == nil {
		t.Errorf("%+v", good)
	}
	if bad.OK || bad.Violations == 0 || len(bad.Shown) == 0 || len(bad.Shown[0].Violations) == 0 || len(bad.Shown[0].Digest) != 16 ||
		!strings.HasSuffix(bad.Shown[0].Replay, " --nodes 3") {
		t.Errorf("%+v", bad)
	}
}

// The process is left as it was.
func TestChaosLeavesTheCollectorAlone(t *testing.T) {
	before := debug.SetGCPercent(123)
	defer debug.SetGCPercent(before)
	call("--arena", "model", "--scenario", "calm", "--schedules", "1")
	if now := debug.SetGCPercent(123); now != 123 {
		t.Errorf("GOGC is %d", now)
	}
}
