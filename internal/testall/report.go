package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// quiet is how long nothing is printed, at most.
const quiet = 20 * time.Second

// A report is what is known of the run so far. It prints a line for each package that ends, and the output
// of the tests that fail, as go test does. Its methods may be called from any goroutine.
type report struct {
	mu      sync.Mutex
	out     io.Writer
	began   time.Time
	printed time.Time

	waiting map[string]*results // of packages that have not ended
	all     int
	failed  []string
	wrong   []string            // what failed and is no package
	skipped map[string][]string // reason → tests
	left    []string            // modules that are not tested
}

// results are those of a package.
type results struct {
	running bool
	output  []string            // what belongs to no test
	tests   map[string][]string // test → what it printed
	failed  bool                // of a test, with its output printed
}

// An event is a line of go test -json: see go doc test2json and go help buildjson.
type event struct {
	Time                            time.Time
	Action, Package, Test           string
	ImportPath, Output, FailedBuild string
	Elapsed                         float64
}

func newReport(out io.Writer, began time.Time, left []string) *report {
	return &report{out: out, began: began, printed: began, left: left, waiting: make(map[string]*results), skipped: make(map[string][]string)}
}

// expect has the report wait for the end of these packages.
func (r *report) expect(packages []string) {
	for _, path := range packages {
		r.waiting[path] = &results{tests: make(map[string][]string)}
		r.all++
	}
}

// read takes in what a go test says, until its end. The caller holds no lock.
func (r *report) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) == nil && e.Action != "" {
				r.add(e)
			} else {
				r.print(string(line))
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *report) add(e event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.Action == "build-output" {
		r.printf("%s", e.Output)
		return
	}
	p := r.waiting[e.Package]
	if p == nil {
		return
	}
	switch {
	case e.Action == "start":
		p.running = true
	case e.Action == "output" && e.Test != "":
		p.tests[e.Test] = append(p.tests[e.Test], e.Output)
	case e.Action == "output":
		p.output = append(p.output, e.Output)
	case e.Test != "":
		if e.Action == "skip" {
			why := reason(p.tests[e.Test])
			r.skipped[why] = append(r.skipped[why], e.Test)
		}
		if e.Action == "fail" {
			p.failed = true
			r.printf("%s", strings.Join(p.tests[e.Test], ""))
		}
		if e.Action == "fail" || e.Action == "pass" || e.Action == "skip" {
			delete(p.tests, e.Test)
		}
	case e.Action == "pass" || e.Action == "skip":
		delete(r.waiting, e.Package)
		r.printf("%s\t%s\n", summary(p, "ok  \t"+e.Package), r.progress(e.Time))
	case e.Action == "fail":
		delete(r.waiting, e.Package)
		r.failed = append(r.failed, e.Package)
		for _, name := range slices.Sorted(maps.Keys(p.tests)) { // those that did not end: of a panic, or a timeout
			r.printf("%s", strings.Join(p.tests[name], ""))
		}
		if why := e.FailedBuild; why != "" {
			r.printf("FAIL\t%s [build failed]\t%s\n", e.Package, r.progress(e.Time))
			return
		}
		for _, line := range p.output {
			if line != "PASS\n" && line != "FAIL\n" && !strings.HasPrefix(line, "FAIL\t") {
				r.printf("%s", line)
			}
		}
		r.printf("FAIL\t%s\t%.3fs\t%s\n", e.Package, e.Elapsed, r.progress(e.Time))
	}
}

// summary is the line with which go test would end the package.
func summary(p *results, otherwise string) string {
	for _, line := range slices.Backward(p.output) {
		if strings.HasPrefix(line, "ok  \t") {
			return strings.TrimRight(line, "\n")
		}
	}
	return otherwise
}

func (r *report) progress(at time.Time) string {
	return fmt.Sprintf("%d of %d, %v", r.all-len(r.waiting), r.all, at.Sub(r.began).Round(time.Second))
}

var message = regexp.MustCompile(`^\s+\S+\.go:\d+: (.*)$`)

// reason is why a test that printed this was skipped: what need.Skip said, or else its last message. A script
// logs more after it.
func reason(output []string) string {
	last := "without a reason"
	for _, text := range output {
		for line := range strings.Lines(text) {
			m := message.FindStringSubmatch(strings.TrimRight(line, "\n"))
			if m == nil {
				continue
			}
			if last = m[1]; strings.HasPrefix(last, need.SkipPrefix) || strings.HasPrefix(last, need.ElsewherePrefix) {
				return last
			}
		}
	}
	return last
}

// tick prints which packages run, if nothing was printed for a while.
func (r *report) tick(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.printed) < quiet {
		return
	}
	var running []string
	for path, p := range r.waiting {
		if p.running {
			running = append(running, path[strings.LastIndex(path, "/")+1:])
		}
	}
	slices.Sort(running)
	doing := "compiling"
	if len(running) > 0 {
		doing = "running " + strings.Join(running, ", ")
	}
	r.printf("... %s: %s\n", r.progress(now), doing)
}

// close prints the last lines. It reports whether all passed; stopped is why the run ended early, if it did.
func (r *report) close(now time.Time, stopped error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, path := range slices.Sorted(maps.Keys(r.waiting)) {
		r.printf("FAIL\t%s [it did not end]\n", path)
	}
	skipped := strings.Join(r.left, ", ")
	for _, why := range slices.Sorted(maps.Keys(r.skipped)) {
		if strings.HasPrefix(why, need.ElsewherePrefix) {
			continue
		}
		if skipped != "" {
			skipped += ", "
		}
		skipped += counted(why, r.skipped[why])
	}
	if skipped == "" {
		skipped = "none"
	}
	took := now.Sub(r.began).Round(time.Second)
	passed := r.all - len(r.failed) - len(r.waiting)
	if ok := stopped == nil && passed == r.all && len(r.wrong) == 0; ok {
		r.printf("all tests passed: %d packages in %v; skipped: %s\n", passed, took, skipped)
		return true
	}
	end := "FAIL"
	if stopped != nil {
		end = "stopped"
	}
	r.printf("%s: of %d packages %d passed in %v", end, r.all, passed, took)
	for _, part := range []struct {
		what string
		who  []string
	}{{"failed", r.failed}, {"did not end", slices.Sorted(maps.Keys(r.waiting))}, {"went wrong", r.wrong}} {
		if len(part.who) > 0 {
			r.printf("; %s: %s", part.what, strings.Join(part.who, ", "))
		}
	}
	r.printf("; skipped: %s\n", skipped)
	return false
}

// counted is a reason with the number of the tests that it is the reason of, or with their names where the
// reason does not say which kind of tests they are.
func counted(why string, tests []string) string {
	if kind, ok := strings.CutPrefix(why, need.SkipPrefix); ok {
		if len(tests) == 1 {
			return "1 test " + kind
		}
		return fmt.Sprintf("%d tests %s", len(tests), kind)
	}
	return fmt.Sprintf("%s (%s)", strings.Join(tests, ", "), why)
}

// problem has the run fail for something that no package says.
func (r *report) problem(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wrong = append(r.wrong, text)
	r.printf("%s\n", text)
}

func (r *report) print(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.printf("%s", text)
}

// printf is called with r.mu held.
func (r *report) printf(format string, args ...any) {
	r.printed = time.Now()
	fmt.Fprintf(r.out, format, args...)
}

// Write prints what a go command writes to its standard error, between two lines of the report.
func (r *report) Write(text []byte) (int, error) {
	r.print(string(text))
	return len(text), nil
}
