package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quorumlock/redlock/bench/contender"
)

// waiting measures how soon, in which order and at what cost waiters get a lock that others hold.
// Every waiter is a process of its own.
func waiting(ctx context.Context, e *env) ([]*table, error) {
	p, err := buildPrograms(ctx, queueless())
	if err != nil {
		return nil, err
	}
	defer p.remove()
	w := &waits{e, p}
	var tables []*table
	for _, part := range []func(context.Context) (*table, error){
		w.handOvers,
		func(ctx context.Context) (*table, error) { return w.switches(ctx, 8, 5) },
		func(ctx context.Context) (*table, error) { return w.switches(ctx, min(32, w.most), 4) },
		w.order, w.splits, w.manyNames, w.idle,
	} {
		t, err := part(ctx)
		if err != nil {
			return nil, err
		}
		tables = append(tables, t)
	}
	return tables, nil
}

type waits struct {
	*env
	programs *programs
}

// rows returns the rows of a table that has no contenders.
func rows(names ...string) []contender.Contender {
	out := make([]contender.Contender, len(names))
	for i, name := range names {
		out[i].Name = name
	}
	return out
}

// with opens the contender in n processes, and ends them after use.
func (w *waits) with(ctx context.Context, contender string, addrs []string, n int, use func(*workers) error) error {
	c, err := w.programs.hire(ctx, contender, n)
	if err != nil {
		return err
	}
	o := w.one(taskOpen, contender)
	o.Addrs = addrs
	if err = c.open(o); err == nil {
		err = use(c)
	}
	return errors.Join(err, c.dismiss())
}

// rest is how long a lock is held so that the next ones are already waiting, with nothing under way.
const rest = 3 * time.Millisecond

func (w *waits) handOvers(ctx context.Context) (*table, error) {
	waiters := map[string]int{"one waiter": 1, "eight waiters": 8}
	s, err := w.interleave(ctx, "waiting, hand-over", rows("one waiter", "eight waiters"), func(ctx context.Context, c contender.Contender) (sample, error) {
		alone, err := w.programs.ask(ctx, ourName, w.one(taskCycles, ourName))
		if err != nil {
			return nil, err
		}
		got := sample{"lock": alone["lock"]}
		err = w.with(ctx, ourName, w.fleet.addrs(), 1, func(one *workers) error {
			o := w.one(taskAcquire, ourName)
			o.Pause, o.Most = rest, max(2, w.handed/2)
			h, err := one.contend(o, 0, time.Minute)
			if err == nil {
				got["rested"] = quantile(h.waits(0), .5)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		err = w.with(ctx, ourName, w.fleet.addrs(), waiters[c.Name]+1, func(all *workers) error {
			o := w.one(taskAcquire, ourName)
			o.Hold, o.Most = rest, max(2, w.handed/len(all.members))
			h, err := all.contend(o, rest, time.Minute)
			if err != nil {
				return err
			}
			took := h.handOvers()
			got["hand-overs"], got["p50"], got["p99"] = float64(len(took)), quantile(took, .5), quantile(took, .99)
			got["ratio"], got["rested ratio"], got["order"] = got["p50"]/got["lock"], got["p50"]/got["rested"], h.inOrder(0)
			return nil
		})
		return got, err
	})
	if err != nil {
		return nil, err
	}
	return &table{
		title: "waiting, hand-over",
		text: fmt.Sprintf("From the moment at which the holder begins to release until the next waiter has the lock. "+
			"It is held for %v each time.", rest),
		head: "redlock, with",
		columns: []column{
			total("hand-overs", "hand-overs", count),
			median("p50", "p50", duration),
			median("p99", "p99", duration),
			median("lock p50, uncontended", "lock", duration),
			within("p50 ÷ lock p50 (wanted: ≤ 3)", "ratio"),
			median("the same, after a rest", "rested", duration),
			within("p50 ÷ that", "rested ratio"),
			median("in order (wanted: 100 %)", "order", share),
		},
		series: s,
		notes: []string{
			"The uncontended lock is one caller's in a process of its own, a moment before, without a pause.",
			fmt.Sprintf("After a rest: the same caller, with a pause of %v before each lock. A machine that has had nothing to do takes longer.", rest),
			"In order: the one that gets the lock has asked before all that get it later.",
		},
	}, nil
}

const ourName = "redlock"

// switches makes all processes wait for one name without pause, for each contender.
func (w *waits) switches(ctx context.Context, processes int, target float64) (*table, error) {
	title := fmt.Sprintf("waiting, processes: %d", processes)
	s, err := w.interleave(ctx, title, contender.Waiting(), func(ctx context.Context, c contender.Contender) (sample, error) {
		var got sample
		return got, w.with(ctx, c.Name, w.fleet.addrs(), processes, func(all *workers) error {
			before, err := w.fleet.sent(ctx)
			if err != nil {
				return err
			}
			length := 2 * w.window
			stop := bystander()
			h, err := all.contend(w.one(taskAcquire, c.Name), 0, length)
			late := stop()
			if err != nil {
				return err
			}
			after, err := w.fleet.sent(ctx)
			if err != nil {
				return err
			}
			n, waited, later := float64(h.switches()), h.waits(0), h.waits(length/10)
			commands := after["evalsha"] + after["eval"] + after["subscribe"] - before["evalsha"] - before["eval"] - before["subscribe"]
			if c.Name == contender.Reference {
				commands += after["set"] - before["set"] // its scripts execute none
			}
			got = sample{
				"switches": n / length.Seconds(), "locks": float64(h.had) / length.Seconds(),
				"longest": quantile(waited, 1), "mean": mean(waited), "uneven": quantile(waited, 1) / mean(waited),
				"later": quantile(later, 1) / max(1, mean(later)),
				"jain":  jain(h.shares()), "order": h.inOrder(0), "late": late,
			}
			if n > 0 {
				got["commands"], got["cpu"] = commands/n, (after["cpu"]-before["cpu"])*float64(time.Second)/n
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return &table{
		title: title,
		text:  fmt.Sprintf("Each process waits for the same name, releases it at once and waits again, for %v a round.", 2*w.window),
		columns: []column{
			median("switches/s", "switches", count),
			versus(fmt.Sprintf("÷ redsync (wanted: ≥ %v)", target), "switches"),
			median("locks/s", "locks", count),
			median("commands/switch (wanted: ≤ 18)", "commands", decimal),
			median("servers' CPU/switch", "cpu", duration),
			median("longest wait", "longest", duration),
			median("mean wait", "mean", duration),
			within("longest ÷ mean (wanted: ≤ 1.5)", "uneven"),
			within("after the first tenth", "later"),
			median("a bystander, late by", "late", duration),
			median("Jain's index (wanted: ≥ 0.99)", "jain", thousandths),
			median("in order", "order", share),
		},
		series: s,
		notes: append([]string{
			"A switch: the next holder is another process.",
			"Commands are those that clients send (EVALSHA, EVAL, SUBSCRIBE, and redsync's SET), not those that scripts execute.",
			"Waits are from the first moment on, when all come at once; one that has lasted until the end counts with that. " +
				"After the first tenth: of the waits that began then.",
			"A bystander sleeps for 1 ms, again and again: its largest delay. It wants no lock, so that is the machine's.",
			"Jain's index is of the locks that each process had: 1 if all had the same.",
		}, notes(contender.Waiting())...),
	}, nil
}

// bystander sleeps for a millisecond again and again until it is stopped, and returns the largest
// delay: any process may have had to wait for a CPU for that long.
func bystander() (stop func() float64) {
	done, said := make(chan struct{}), make(chan time.Duration)
	go func() {
		var late time.Duration
		for {
			select {
			case <-done:
				said <- late
				return
			default:
			}
			begin := time.Now()
			time.Sleep(time.Millisecond)
			late = max(late, time.Since(begin)-time.Millisecond)
		}
	}()
	return func() float64 {
		close(done)
		return float64(<-said)
	}
}

// order measures the order of many hand-overs on healthy nodes.
func (w *waits) order(ctx context.Context) (*table, error) {
	held := map[string]time.Duration{"eight processes, held for 1 ms": time.Millisecond, "eight processes, released at once": 0}
	s, err := w.interleave(ctx, "waiting, order", rows(slices.Sorted(maps.Keys(held))...), func(ctx context.Context, c contender.Contender) (sample, error) {
		var got sample
		return got, w.with(ctx, ourName, w.fleet.addrs(), 8, func(all *workers) error {
			o := w.one(taskAcquire, ourName)
			o.Most, o.Hold = max(2, w.fifo/len(all.members)), held[c.Name]
			h, err := all.contend(o, rest, time.Minute)
			if err != nil {
				return err
			}
			strictly, roughly := h.inOrder(0), h.inOrder(time.Millisecond)
			n, waited := float64(h.had), h.waits(0)
			got = sample{
				"longest": quantile(waited, 1), "mean": mean(waited), "uneven": quantile(waited, 1) / mean(waited),
				"locks": n, "order": strictly, "wrong": n * (1 - strictly), "roughly wrong": n * (1 - roughly),
				"unserved": float64(len(h.acquisitions) - h.had), "tries": h.tries(),
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return &table{
		title: "waiting, order",
		text: fmt.Sprintf("Each process waits for the same name, has it, releases it and waits again, a fixed number of times; they come %v after each other, and then as they are served. "+
			"Their order of arrival is that of their calls, which each of them notes.", rest),
		head: "redlock, with",
		columns: []column{
			total("locks", "locks", count),
			average("in order (wanted: 100 %)", "order", share),
			total("out of order", "wrong", count),
			total("by more than 1 ms", "roughly wrong", count),
			total("never served", "unserved", count),
			median("attempts/lock", "tries", hundredths),
			median("longest wait", "longest", duration),
			median("mean wait", "mean", duration),
			within("longest ÷ mean (wanted: ≤ 1.5)", "uneven"),
		},
		series: s,
		notes: []string{
			"Out of order: it had the lock before another process that had asked earlier. Where it is released at once, two may ask " +
				"in the time that a request takes to get to the nodes, and which of them comes first there is as it happens.",
			"Attempts are rounds of requests to all nodes: one is refused, and one that follows a call is granted.",
		},
	}, nil
}
