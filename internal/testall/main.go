// Command testall runs the tests of all modules of this tree, which one go test cannot, says what they take
// and how far they are, and ends with one line: what passed, and which tests were skipped and why.
//
//	go run ./internal/testall [-except REGEXP] [FLAG OF go test ...]
//
// It leaves out the packages whose import path matches -except, and tells the tests by REDLOCK_SERVERS=1 that they
// may start servers. It runs no test twice.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

func main() {
	except, flags, err := arguments(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "testall:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if !run(ctx, except, flags) {
		os.Exit(1)
	}
}

// arguments splits the command line into the packages to test and what go test is told. go vet has a target
// of its own, and would take a tenth of the time.
func arguments(args []string) (except *regexp.Regexp, flags []string, err error) {
	except = regexp.MustCompile("^$")
	flags = []string{"-vet=off"}
	for i := 0; i < len(args); i++ {
		if args[i] != "-except" {
			flags = append(flags, args[i])
			continue
		}
		if i++; i == len(args) {
			return nil, nil, fmt.Errorf("-except needs a regular expression of import paths")
		}
		if except, err = regexp.Compile(args[i]); err != nil {
			return nil, nil, err
		}
	}
	return except, flags, nil
}

// run runs the tests of the packages whose path does not match except. It reports whether all of them passed.
func run(ctx context.Context, except *regexp.Regexp, flags []string) bool {
	if os.Getenv(need.UseServers) == "" {
		_ = os.Setenv(need.UseServers, "1")
	}
	if os.Getenv("GOGC") == "" { // the compiler takes less of the processors so, and the tests take as much by themselves
		_ = os.Setenv("GOGC", "400")
	}
	began := time.Now()
	modules, left, err := listModules(ctx, except)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testall:", err)
		return false
	}
	r := newReport(os.Stdout, began, left)
	for _, m := range modules {
		r.expect(m.packages)
	}
	fmt.Printf("the tests of %d packages in %d modules, by go test %s\n", len(r.waiting), len(modules), strings.Join(flags, " "))
	if !slices.Contains(flags, "-race") {
		fmt.Printf("this takes about 8 minutes with two processors (here: %d), compiling included\n", runtime.GOMAXPROCS(0))
	}
	for _, s := range left {
		fmt.Println("skipped:", s)
	}
	for _, s := range missing() {
		fmt.Println("skipped:", s)
	}
	fmt.Println("left to make ci: the race detector, the mutants, more schedules, the models")

	ticks := time.NewTicker(time.Second)
	defer ticks.Stop()
	go func() {
		for at := range ticks.C {
			r.tick(at)
		}
	}()
	// The root module has most of the tests. Those of the others wait for databases and for time to pass: they run
	// beside it, two modules at a time, each with one package at a time.
	var beside sync.WaitGroup
	next := make(chan module)
	for range 2 {
		beside.Go(func() {
			for m := range next {
				m.test(ctx, r, append(slices.Clone(flags), "-p=1"))
			}
		})
	}
	beside.Go(func() {
		defer close(next)
		for _, m := range modules[1:] {
			next <- m
		}
	})
	modules[0].test(ctx, r, flags)
	beside.Wait()
	return r.close(time.Now(), ctx.Err())
}

// test runs the tests of a module, and tells r what the go command says of them.
func (m module) test(ctx context.Context, r *report, flags []string) {
	if len(m.packages) == 0 || ctx.Err() != nil {
		return
	}
	cmd := exec.CommandContext(ctx, "go", slices.Concat([]string{"test", "-json"}, flags, m.packages)...)
	cmd.Dir = m.dir
	group(cmd)
	cmd.WaitDelay = 10 * time.Second // then they are killed
	cmd.Stderr = r
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		err = r.read(out)
		_ = cmd.Wait() // what failed is in what it said, and a package of which it said nothing has failed
	}
	if err != nil {
		r.problem(fmt.Sprintf("%s: go test: %v", m.dir, err))
	}
}
