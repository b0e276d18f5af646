package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock/bench/contender"
	"github.com/quorumlock/redlock/internal/testbed/redisproc"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// miniature is every scenario in a moment: enough to prove that each contender
// gets through each of them and that the tables come out, and nothing about speed.
func miniature(t *testing.T) *env {
	t.Helper()
	need.Servers(t, redisproc.Available)
	contender.Silence()
	f, err := startFleet(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.stop)
	return &env{
		sizes: sizes{
			rounds: need.Sized(1, 1, 2), window: 20 * time.Millisecond, ttl: 10 * time.Second,
			callers: []int{1, 8}, faulted: 50, stuck: 1, orphans: 50, contended: 3, held: 50,
			counted: 100, step: 50, handed: 20, fifo: 80, waitedFor: 20, listed: 500, most: need.Sized(12, 12, 50),
		},
		contenders: contender.All(),
		fleet:      f,
	}
}

func TestScenarios(t *testing.T) {
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			e := miniature(t)
			switch s.name {
			case "hung", "killed": // seconds for each of its cycles
				e.rounds = 1
				e.contenders = slices.DeleteFunc(e.contenders, func(c contender.Contender) bool { return c.Slow })
			case "uncontended": // one contender after another, and then again
				e.rounds = 2
			case "waiting": // many processes, for half a minute
				need.Long(t)
				e.rounds, e.window = 1, 2*time.Second
			case "renewal": // lasts for four thirds of the TTL for each contender
				need.Long(t)
				e.rounds, e.ttl = 1, 1500*time.Millisecond
			}
			tables, err := s.run(t.Context(), e)
			if err != nil {
				t.Fatal(err)
			}
			for _, table := range tables {
				checkTable(t, table)
			}
		})
	}
}

func checkTable(t *testing.T, table *table) {
	t.Helper()
	for _, f := range table.series.failures {
		t.Errorf("%s: %s", table.title, f)
	}
	var text strings.Builder
	table.write(&text)
	for _, c := range table.series.contenders {
		if !strings.Contains(text.String(), "| "+c.Name) {
			t.Errorf("%s: no row for %s", table.title, c.Name)
		}
		for _, col := range table.columns {
			if len(table.series.values(c.Name, col.figure)) == 0 {
				t.Errorf("%s: %s has no figure %q", table.title, c.Name, col.figure)
			}
		}
	}
}

// TestCommand goes the whole way from flags to a file.
func TestCommand(t *testing.T) {
	need.Servers(t, redisproc.Available)
	out := filepath.Join(t.TempDir(), "report.md")
	var stdout strings.Builder
	err := command(t.Context(), []string{
		"-quick", "-rounds", "1", "-time", "20ms", "-scenario", "uncontended",
		"-contenders", "redsync,redlock", "-out", out,
	}, &stdout)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"- machine: ", "redis-server ", "-time 20ms", "| redsync |", "| redlock |"} {
		if !strings.Contains(string(file), want) || !strings.Contains(stdout.String(), want) {
			t.Errorf("report without %q:\n%s", want, file)
		}
	}
}

func TestCommandRefuses(t *testing.T) {
	for _, args := range [][]string{
		{"-scenario", "unheard-of"},
		{"-contenders", "redsync,unheard-of"},
		{"stray"},
	} {
		if err := command(context.Background(), args, new(strings.Builder)); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}
