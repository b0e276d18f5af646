package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/bench/contender"
	"github.com/quorumlock/redlock/internal/listing"
	"github.com/quorumlock/redlock/internal/wire"
)

// besides is how often a neighbour does something: so rarely that it does not wait for itself.
const besides = 2 * time.Millisecond

// list measures how long redlock ls takes on many locks, and what other clients of the nodes notice of it.
func list(ctx context.Context, e *env) ([]*table, error) {
	programs, err := buildPrograms(ctx)
	if err != nil {
		return nil, err
	}
	defer programs.remove()
	c, err := named(contender.All(), "redlock")
	if err != nil {
		return nil, err
	}
	s, err := e.interleave(ctx, "ls", []contender.Contender{c}, func(ctx context.Context, c contender.Contender) (sample, error) {
		got := sample{}
		l := load{callers: 1, window: e.window}
		return got, e.with(ctx, c, e.fleet.addrs(), l, func(locker contender.Locker) error {
			return e.besideList(ctx, programs, locker, got)
		})
	})
	if err != nil {
		return nil, err
	}
	columns := func(what, figure string) []column {
		return []column{
			median(what+" p50", "quiet "+figure+" p50", duration),
			median("p99", "quiet "+figure+" p99", duration),
			median("p50 beside ls", "ls "+figure+" p50", duration),
			median("p99", "ls "+figure+" p99", duration),
			within("p50 ÷ quiet", "ls "+figure+" p50 ratio"),
			within("p99 ÷ quiet (wanted: ≤ 1.10)", "ls "+figure+" p99 ratio"),
		}
	}
	return []*table{
		{
			title: "ls, how long it takes",
			text:  fmt.Sprintf("%d locks on each of %d nodes, listed by a process of its own with the lowest priority.", e.listed, nodes),
			columns: []column{
				median("locks listed", "locks", count), median("took", "took", duration), median("locks/s", "rate", count),
				median("servers' CPU", "cpu", duration),
			},
			series: s,
		},
		{
			title: "ls, what others notice",
			text: fmt.Sprintf("One caller locks and unlocks one name every %v for %v, and pings the first node as often for as long, again and again. In the second half of each of these times the list is stopped: that is the quiet, and not counted in the time it takes. Mostly a list runs on another computer than a node: so the caller and the first node have a processor for themselves, if there are two, and the other nodes and the list have the rest.",
				besides, e.window),
			columns: append(columns("lock", "lock"), columns("ping", "ping")...),
			series:  s,
		},
	}, nil
}

// apart has the neighbour and the first node share the last processor, and the other nodes and the list share the
// rest: it gives back which these are, and what undoes it. Where there is one processor, or no taskset, all share all.
func (e *env) apart() (rest string, together func()) {
	last := runtime.NumCPU() - 1
	if last == 0 || confine(os.Getpid(), strconv.Itoa(last)) != nil {
		return "", func() {}
	}
	place := func(first, others string) {
		_ = confine(os.Getpid(), first)
		_ = confine(e.fleet.servers[0].Pid(), first)
		for _, s := range e.fleet.servers[1:] {
			_ = confine(s.Pid(), others)
		}
	}
	rest = fmt.Sprint("0-", last-1)
	place(strconv.Itoa(last), rest)
	all := fmt.Sprint("0-", last)
	return rest, func() { place(all, all) }
}

// confine has a process, with all its threads, use these processors only.
func confine(pid int, cpus string) error {
	return exec.Command("taskset", "-acp", cpus, strconv.Itoa(pid)).Run()
}

// besideList lists the locks, and has a neighbour at work while the list runs and while it is stopped.
func (e *env) besideList(ctx context.Context, programs *programs, locker contender.Locker, got sample) error {
	if err := e.fleet.fill(ctx, e.listed); err != nil {
		return err
	}
	rest, together := e.apart()
	defer together()
	o := e.one(taskList, "")
	o.Name, o.Processors = filled, rest
	var seen [2][2]noticed // in the quiet and beside the list: of locks and of pings
	before, err := e.fleet.counters(ctx)
	if err != nil {
		return err
	}
	lister, err := programs.hire(ctx, "", 1)
	if err != nil {
		return err
	}
	limit, cancel := context.WithCancel(ctx)
	stood := make(chan error, 1)
	now := &atomic.Pointer[noticed]{}
	now.Store(&seen[1][0])
	seen[0][1].ping, seen[1][1].ping = true, true
	go func() { stood <- stand(limit, locker, e.fleet.watch[0], now) }()
	answer, stopped, err := lister.byTurns(o, e.window/2, func(turn int) {
		now.Store(&seen[1-turn%2][turn/2%2])
	})
	cancel()
	if err = errors.Join(err, <-stood, lister.dismiss()); err != nil {
		return err
	}
	after, err := e.fleet.counters(ctx)
	if err != nil {
		return err
	}
	for figure, v := range answer {
		got[figure] = v
	}
	got["took"] -= float64(stopped)
	got["rate"] = got["locks"] / (got["took"] / float64(time.Second))
	got["cpu"] = after.minus(before).cpu * float64(time.Second)
	for i, when := range []string{"quiet", "ls"} {
		for j, what := range []string{" lock", " ping"} {
			took := seen[i][j].took
			got[when+what+" p50"], got[when+what+" p99"] = quantile(took, .5), quantile(took, .99)
		}
	}
	for _, figure := range []string{" lock p50", " lock p99", " ping p50", " ping p99"} {
		if base := got["quiet"+figure]; base > 0 {
			got["ls"+figure+" ratio"] = got["ls"+figure] / base
		}
	}
	return nil
}

// byTurns has the one worker carry out an order, and stops it for every second moment: what others notice of it
// is compared with what they notice of it in the next moment. A moment is shorter than the list's patience. byTurns
// tells which turn it is, from 0, when it runs, and for how long it was stopped.
func (c *workers) byTurns(o order, moment time.Duration, tell func(turn int)) (got sample, stopped time.Duration, err error) {
	process := c.members[0].process.Process
	defer func() { _ = process.Signal(syscall.SIGCONT) }() // its answer may come in the moment in which it is stopped
	done := make(chan error, 1)
	go func() {
		answers, err := c.all(func(int) order { return o })
		if err == nil {
			got = answers[0].Sample
		}
		done <- err
	}()
	ticks := time.NewTicker(moment)
	defer ticks.Stop()
	since := time.Now() // the last turn began
	for turn := 0; ; turn++ {
		signal := syscall.SIGCONT
		if turn%2 == 1 {
			signal = syscall.SIGSTOP
		}
		if err := process.Signal(signal); err != nil {
			return nil, 0, err
		}
		tell(turn)
		select {
		case err := <-done:
			return got, stopped, err
		case <-ticks.C:
		}
		if turn%2 == 1 {
			stopped += time.Since(since)
		}
		since = time.Now()
	}
}

// What is noticed of the list is how long locks take, or pings.
type noticed struct {
	ping bool
	took []time.Duration
}

// stand uses the nodes at a modest rate until ctx ends, and notes how long each lock or each ping takes.
func stand(ctx context.Context, locker contender.Locker, node *redis.Client, now *atomic.Pointer[noticed]) error {
	name := freshPrefix() + "neighbour" + nameEnd
	tick := time.NewTicker(besides)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		var lock contender.Lock
		var err error
		into, asked := now.Load(), time.Now()
		if into.ping {
			err = node.Ping(context.WithoutCancel(ctx)).Err()
		} else {
			lock, err = locker.Lock(context.WithoutCancel(ctx), name)
		}
		if err != nil {
			return err
		}
		if into.took = append(into.took, time.Since(asked)); lock == nil {
			continue
		}
		if err := lock.Release(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
}

// filled is what the names of fill begin with.
const filled = "listed:"

// fill puts so many locks on all nodes.
func (f *fleet) fill(ctx context.Context, n int) error {
	const part = 1000
	since := time.Now() // the same token on each node
	for _, w := range f.watch {
		for from := 0; from < n; from += part {
			if _, err := w.Pipelined(ctx, func(p redis.Pipeliner) error {
				for i := from; i < min(from+part, n); i++ {
					token := wire.Sign("0f6a5d3e-61a7-4c3b-9d0e-"+strconv.Itoa(100_000_000+i), since, "", "", "bench:"+strconv.Itoa(i%100))
					p.Set(ctx, filled+strconv.Itoa(i), token, time.Hour)
				}
				return nil
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

// yield gives this process a lower priority than the servers and the neighbour have: mostly an operator's
// list runs on another machine than they do, and here it must not take their processors.
func yield() {
	const lowest = 19
	threads, _ := os.ReadDir("/proc/self/task") // elsewhere than on Linux, 0 is the whole process
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, lowest)
	for _, t := range threads { // those that begin later are like the one that starts them
		if id, err := strconv.Atoi(t.Name()); err == nil {
			_ = syscall.Setpriority(syscall.PRIO_PROCESS, id, lowest)
		}
	}
}

// list lists the locks whose names begin with the order's.
func (o order) list(ctx context.Context) (sample, error) {
	var at []listing.Node
	for _, addr := range o.Addrs {
		at = append(at, listing.Node{Name: addr, Options: &redis.Options{Addr: addr}})
	}
	yield()
	if o.Processors != "" {
		if err := confine(os.Getpid(), o.Processors); err != nil {
			return nil, err
		}
	}
	asked := time.Now()
	found, err := listing.Find(ctx, at, listing.Query{Pattern: o.Name + "*", Quorum: len(at)/2 + 1})
	if err != nil {
		return nil, err
	}
	locks := 0
	for range found.All() {
		locks++
	}
	took := time.Since(asked)
	for _, n := range found.Nodes() {
		if n.Err != nil {
			return nil, n.Err
		}
	}
	return sample{"locks": float64(locks), "took": float64(took)}, nil
}
