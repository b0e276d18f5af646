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

// childArg is the only argument of a program that reads its orders from standard input.
const childArg = "measure-as-told"

// An order is a task for a child.
type order struct {
	Task        string
	Contender   string
	Addrs       []string
	TTL, Window time.Duration // Window: of taskCycles

	Name  string        // the name to lock; for taskGather and taskList: the prefix of all names
	At    time.Time     // when to begin
	Until time.Time     // for taskAcquire: when to end
	Most  int           // for taskAcquire: the most acquisitions, 0: any number; for taskGather: the number of names
	Hold  time.Duration // for how long each lock is held
	Pause time.Duration // after each release

	Processors string // for taskList: those that it may use; "": all
}

const (
	taskCycles  = "cycles"  // lock and unlock as one caller, and measure the cost
	taskOpen    = "open"    // open the contender, for the orders that follow
	taskAcquire = "acquire" // wait for a name, hold it, release it, and again
	taskGather  = "gather"  // wait for many names, and report while waiting
	taskList    = "list"    // list the locks whose names begin with Name
	taskScatter = "scatter" // report when all waiters are served or have given up
)

// An answer is a child's answer to an order.
type answer struct {
	Sample       sample
	Acquisitions []acquisition
	Err          string
}

// one returns an order with the usual TTL, window and nodes.
func (e *env) one(task, contender string) order {
	return order{Task: task, Contender: contender, Addrs: e.fleet.addrs(), TTL: e.ttl, Window: e.window}
}

// A worker is the state of a child.
type worker struct {
	locker contender.Waiter
	group  *waiterGroup
}

// obey carries out orders until there are no more.
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
	if o.Task != taskCycles && o.Task != taskOpen && o.Task != taskList && w.locker == nil {
		return fmt.Errorf("%s: no contender is open", o.Task)
	}
	switch o.Task {
	case taskCycles:
		a.Sample, err = o.cycles(ctx)
	case taskList:
		a.Sample, err = o.list(ctx)
	case taskOpen:
		if err = w.close(); err == nil {
			w.locker, err = o.open(ctx)
		}
	case taskAcquire:
		a.Acquisitions, err = acquireRepeatedly(ctx, w.locker, o)
	case taskGather:
		w.group, a.Sample, err = gather(ctx, w.locker, o)
	case taskScatter:
		a.Sample, err = w.group.scatter(ctx)
		w.group = nil
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
