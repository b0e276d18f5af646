package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/quorumlock/redlock/bench/contender"
)

// childArg is the whole command line of a program that is to do as it is told on its
// standard input.
const childArg = "measure-as-told"

// An order is what a child is to do.
type order struct {
	Task        string
	Contender   string
	Addrs       []string
	TTL, Window time.Duration // Window: of taskCycles

	Name  string        // what is locked; of taskGather: what all names begin with
	At    time.Time     // when to begin
	Until time.Time     // when to end; of taskTurns
	Most  int           // turns at the most; 0: any number. Of taskGather: how many names
	Hold  time.Duration // of each turn
	Pause time.Duration // after each turn
}

const (
	taskCycles  = "cycles"  // lock and unlock as one caller, with the prices of it
	taskOpen    = "open"    // open the contender, for what comes next
	taskTurns   = "turns"   // wait for a name, hold it, release it, and again
	taskGather  = "gather"  // wait for many names, and report while they are waited for
	taskScatter = "scatter" // and when all were given up or had
)

// An answer is what a child has to say about an order.
type answer struct {
	Sample sample
	Turns  []turn
	Err    string
}

// one is an order for a task that has the usual TTL, window and nodes.
func (e *env) one(task, contender string) order {
	return order{Task: task, Contender: contender, Addrs: e.fleet.addrs(), TTL: e.ttl, Window: e.window}
}

// A worker is a child at work.
type worker struct {
	locker contender.Waiter
	crowd  *crowd
}

// obey is the whole life of a child: it ends with its orders.
func obey(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	contender.Silence()
	w := &worker{}
	in, out := json.NewDecoder(stdin), json.NewEncoder(stdout)
	for {
		var o order
		if err := in.Decode(&o); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return errors.Join(err, w.close())
		}
		var a answer
		if err := w.do(ctx, o, &a); err != nil {
			a.Err = err.Error()
		}
		if err := out.Encode(a); err != nil {
			return errors.Join(err, w.close())
		}
	}
}

func (w *worker) do(ctx context.Context, o order, a *answer) (err error) {
	if o.Task != taskCycles && o.Task != taskOpen && w.locker == nil {
		return fmt.Errorf("%s: no contender is open", o.Task)
	}
	switch o.Task {
	case taskCycles:
		a.Sample, err = o.cycles(ctx)
	case taskOpen:
		if err = w.close(); err == nil {
			w.locker, err = o.open(ctx)
		}
	case taskTurns:
		a.Turns, err = takeTurns(ctx, w.locker, o)
	case taskGather:
		w.crowd, a.Sample, err = gather(ctx, w.locker, o)
	case taskScatter:
		a.Sample, err = w.crowd.scatter(ctx)
		w.crowd = nil
	default:
		err = fmt.Errorf("unknown task %q", o.Task)
	}
	return err
}

func (w *worker) close() error {
	if w.locker == nil {
		return nil
	}
	defer func() { w.locker = nil }()
	return w.locker.Close()
}

func (o order) cycles(ctx context.Context) (sample, error) {
	c, err := named(contender.Variants(), o.Contender)
	if err != nil {
		return nil, err
	}
	e := &env{sizes: sizes{ttl: o.TTL, window: o.Window}, fleet: watchFleet(o.Addrs)}
	defer e.fleet.stop()
	return e.cycles(ctx, c)
}

// open opens a contender and waits for a name of this process's own, so that its
// connections are there.
func (o order) open(ctx context.Context) (contender.Waiter, error) {
	c, err := named(contender.Waiting(), o.Contender)
	if err != nil {
		return nil, err
	}
	opened, err := c.Open(contender.Config{Addrs: o.Addrs, TTL: o.TTL, Renewal: o.TTL / 3})
	if err != nil {
		return nil, err
	}
	w, ok := opened.(contender.Waiter)
	if !ok {
		return nil, errors.Join(fmt.Errorf("%s does not wait", c.Name), opened.Close())
	}
	lock, err := w.Wait(ctx, o.Name)
	if err == nil {
		err = lock.Release(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

func named(all []contender.Contender, name string) (contender.Contender, error) {
	i := slices.IndexFunc(all, func(c contender.Contender) bool { return c.Name == name })
	if i < 0 {
		return contender.Contender{}, fmt.Errorf("unknown contender %q", name)
	}
	return all[i], nil
}
