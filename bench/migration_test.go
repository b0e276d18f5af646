package main

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/bench/contender"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// TestMigration is docs/from-redsync.md: from redsync alone to redlock alone on one key, both
// together in between, while a node goes and comes back. There are never two holders, and each
// phase lasts until every worker has had the lock some times.
func TestMigration(t *testing.T) {
	contender.Silence() // about the node that is down
	// They lose nothing when they are killed and restarted: redsync would count the vote of a node that
	// has.
	servers, clients := settledServers(t, 3, "--appendonly", "yes", "--appendfsync", "always")
	var pools []redsyncredis.Pool
	for _, c := range clients {
		pools = append(pools, goredis.NewPool(c))
	}
	rs := redsync.New(pools...)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()

	var in guarded
	old := func(ctx context.Context) error {
		return withRedsync(ctx, rs, "a", func(context.Context) error { return in.work(t, 0) })
	}
	var lockers []*redlock.Locker
	for range 2 { // processes
		lk, err := rollout(clients)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = lk.Close() })
		lockers = append(lockers, lk)
	}
	// As redlock prepare would, before the rollout.
	if err := lockers[0].WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	anew := func(lk *redlock.Locker) func(context.Context) error {
		return func(ctx context.Context) error {
			return withRedlock(ctx, lk, "a", func(_ context.Context, l *redlock.Lock) error { return in.work(t, l.Fence()) })
		}
	}

	both := []func(context.Context) error{old, old, old, anew(lockers[0]), anew(lockers[0]), anew(lockers[1])}
	for _, phase := range []struct {
		name    string
		before  func() error
		callers []func(context.Context) error
	}{
		{"redsync", nil, []func(context.Context) error{old, old, old, old, old, old}},
		{"half and half", nil, both},
		{"one node down", func() error { servers[2].Kill(); return nil }, both},
		{"and back, with its data", servers[2].Restart, both},
		{"redlock", nil, []func(context.Context) error{anew(lockers[0]), anew(lockers[0]), anew(lockers[0]), anew(lockers[1]), anew(lockers[1]), anew(lockers[1])}},
	} {
		// The node goes and comes back with the callers at work.
		if !during(ctx, t, phase.name, phase.before, phase.callers) {
			return
		}
	}
	t.Logf("%d times under the lock", in.visits.Load())
}

// during makes callers take the lock again and again until each has had it a few times after before
// was called, in the middle.
func during(ctx context.Context, t *testing.T, name string, before func() error, callers []func(context.Context) error) bool {
	t.Helper()
	times := need.Sized(2, 2, 5)
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	var all, first, second sync.WaitGroup
	var changed atomic.Bool
	first.Add(len(callers))
	second.Add(len(callers))
	for _, call := range callers {
		all.Go(func() {
			early, late := 0, 0
			for ctx.Err() == nil {
				err := call(ctx)
				var taken *redsync.ErrTaken
				switch {
				case err == nil && !changed.Load():
					if early++; early == 1 {
						first.Done()
					}
				case err == nil:
					if late++; late == times {
						second.Done()
					}
				case ctx.Err() == nil && !errors.As(err, &taken) && !errors.Is(err, redsync.ErrFailed):
					t.Errorf("%s: %v", name, err)
				}
			}
			if early == 0 {
				first.Done()
			}
			if late < times {
				second.Done()
				t.Errorf("%s: a worker had the lock %d times, and then %d, when time was up", name, early, late)
			}
		})
	}
	first.Wait()
	if before != nil {
		if err := before(); err != nil {
			t.Error(err)
		}
	}
	changed.Store(true)
	second.Wait()
	enough()
	all.Wait()
	return !t.Failed()
}

// guarded is the resource that the lock protects.
type guarded struct {
	inside, visits atomic.Int64
	last           atomic.Int64 // the largest fence
}

// work checks that there is no other holder. Holders of redlock's locks have a fence.
func (r *guarded) work(t *testing.T, fence int64) error {
	began := time.Now()
	if n := r.inside.Add(1); n > 1 {
		t.Errorf("%d inside at once", n)
	}
	if fence != 0 {
		if was := r.last.Swap(fence); was >= fence {
			t.Errorf("fence %d comes after %d", fence, was)
		}
	}
	time.Sleep(time.Millisecond) // the work
	r.visits.Add(1)
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("%v inside: the lock may have ended under the work, which proves nothing", took)
	}
	r.inside.Add(-1)
	return nil
}

const migrationPage = "../docs/from-redsync.md"

// TestMigrationCode: the Go code of the page is compiled here, and all code here is on the page.
func TestMigrationCode(t *testing.T) {
	page, code := slurp(t, migrationPage), slurp(t, "migration_code_test.go")
	_, code, _ = strings.Cut(code, "through these functions.\n")
	for _, m := range regexp.MustCompile("(?s)\n```go\n(.*?)```\n").FindAllStringSubmatch(page, -1) {
		if !strings.Contains(code, m[1]) {
			t.Errorf("the page has code that is not compiled:\n%s", m[1])
		}
		code = strings.Replace(code, m[1], "", 1)
	}
	if code = strings.TrimSpace(code); code != "" {
		t.Errorf("the page does not have\n%s", code)
	}
}

// TestMigrationNames: the page has a replacement for every name that redsync exports.
func TestMigrationNames(t *testing.T) {
	page := slurp(t, migrationPage)
	list := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", "github.com/go-redsync/redsync/v4")
	dir, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	names := 0
	has := func(name string) {
		names++
		if ast.IsExported(name) && !regexp.MustCompile("`[^`]*\\b"+name+"\\b").MatchString(page) {
			t.Errorf("the page does not say what becomes of %s", name)
		}
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				has(d.Name.Name)
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.TypeSpec:
						has(s.Name.Name)
					case *ast.ValueSpec:
						for _, n := range s.Names {
							has(n.Name)
						}
					}
				}
			}
		}
	}
	if names < 30 {
		t.Errorf("redsync has %d names, which cannot be", names)
	}
}

func slurp(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
