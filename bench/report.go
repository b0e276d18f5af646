package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/redlock/bench/contender"
)

// A finding is a scenario with its tables.
type finding struct {
	scenario scenario
	tables   []*table
}

// writeReport puts the figures beside what they depend on: figures without
// their machine, versions and command cannot be repeated or doubted.
func (e *env) writeReport(w io.Writer, findings []finding, failed error) {
	fmt.Fprintf(w, "# Lock libraries on five Redis servers\n\n")
	if failed != nil {
		fmt.Fprintf(w, "**Incomplete: %v.**\n\n", failed)
	}
	fmt.Fprintf(w, "- date: %s, took %v\n", e.began.Format(time.DateOnly), time.Since(e.began).Round(time.Second))
	fmt.Fprintf(w, "- command: `%s`\n", strings.Join(append([]string{"go run ."}, e.args...), " "))
	fmt.Fprintf(w, "- machine: %s, %d cores, %s %s, kernel %s\n",
		cpuModel(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, kernel())
	fmt.Fprintf(w, "- load average before the first measurement: %s, after the last: %s\n", e.loadBefore, loadAverage())
	fmt.Fprintf(w, "- %s, GOMAXPROCS %d; redis-server %s\n", runtime.Version(), runtime.GOMAXPROCS(0), e.server["redis_version"])
	for _, line := range moduleVersions(e.contenders) {
		fmt.Fprintf(w, "- %s\n", line)
	}
	fmt.Fprintf(w, "- TTL %v, rounds %d, window %v; clients are stock, `redis.NewClient(&redis.Options{Addr: …})`, unless a row says otherwise\n\n",
		e.ttl, e.rounds, e.window)
	fmt.Fprintf(w, "Contenders take turns within every round. Figures are medians over the rounds; "+
		"a ratio is taken inside each round and shown as median (lowest–highest).\n\n")
	for _, f := range findings {
		fmt.Fprintf(w, "## %s\n\n", f.scenario.title)
		for _, t := range f.tables {
			t.write(w)
		}
	}
}

// moduleVersions reads from the binary itself what it was built with.
func moduleVersions(cs []contender.Contender) []string {
	wanted := []string{"github.com/redis/go-redis/v9"}
	for _, c := range cs {
		wanted = append(wanted, c.Module)
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return []string{"built without module information"}
	}
	var out []string
	for _, m := range info.Deps {
		if !slices.Contains(wanted, m.Path) {
			continue
		}
		version := m.Version
		if m.Replace != nil {
			version = "this tree"
		}
		out = append(out, m.Path+" "+version)
	}
	return out
}

func cpuModel() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown CPU"
	}
	for line := range strings.Lines(string(text)) {
		if field, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(field) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown CPU"
}

// loadAverage says how busy the machine was recently; figures from a busy machine are only good as ratios.
func loadAverage() string {
	fields := strings.Fields(firstLine("/proc/loadavg"))
	return strings.Join(fields[:min(len(fields), 3)], " ")
}

// firstLine reads the small files in which Linux describes itself; elsewhere they do not exist.
// kernel is the version alone: what a distribution puts behind it names the
// machine more than the kernel.
func kernel() string {
	version, _, _ := strings.Cut(firstLine("/proc/sys/kernel/osrelease"), "-")
	return version
}

func firstLine(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return "unknown"
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}
