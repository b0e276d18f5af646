package chaos

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/quorumlock/redlock/internal/redisproc"
)

// Real runs the library in processes of their own over redis-server processes, by
// way of proxies that break the network. It takes as long as it says. Whoever runs
// plans here calls [ClientMain] first.
var Real = &Arena{
	Name:  "real",
	About: "clients in processes of their own over redis-server processes, with signals and a broken network",
	Lag:   100 * time.Millisecond,
	Least: 200 * time.Millisecond,
	Most:  time.Second,
	Room:  12, // more processes than that wait for each other, and not for locks
	ready: redisproc.Available,
	cannot: []Trouble{
		Repeat, RepeatLate, // TCP delivers once, and nobody on the way here sends again
		Loading,                 // takes a large data set, of which nobody could tell what is left behind
		Step, Clock, Skew, Boot, // all processes have the one clock of this machine
		Suspend, Still, // and nobody can suspend it but from outside
	},
	run: runReal,
}

func runReal(p *Plan) (*History, error) {
	if os.Getenv(clientVariable) != "" {
		return nil, errors.New("chaos: this process is a client in the real arena itself: ClientMain must be called first of all")
	}
	w := &realWorld{plan: p}
	defer w.close()
	if err := w.open(); err != nil {
		return nil, fmt.Errorf("chaos: %w", err)
	}
	d := newDriver(p, w)
	w.store.serve(newMemory(d.rec.note))
	w.machine.begin(d.rec)
	d.join = func(number int) (member, error) {
		r := w.members[number-1]
		r.rec, r.lots = d.rec, d.lots
		return r, nil
	}
	d.settle, d.slow = poll, true
	return d.run(), nil
}

// poll waits for some time, but no longer than until done has said so again and
// again: what is on its way may come late.
func poll(limit time.Duration, done func() bool) {
	const pause, often = 50 * time.Millisecond, 3
	for deadline, times := time.Now().Add(limit), 0; times < often && time.Now().Before(deadline); time.Sleep(pause) {
		if times++; !done() {
			times = 0
		}
	}
}

// A realWorld is what there is for one plan, and for no other: nothing that a run
// leaves behind can be met by the next.
type realWorld struct {
	plan    *Plan
	nodes   []*realNode
	store   *shop
	machine *machine
	members []*remote // by number, from 1; a process that was not needed never works

	mu   sync.Mutex
	errs []error
}

// open starts all processes, so that none has to be waited for later.
func (w *realWorld) open() (err error) {
	if w.store, err = newShop(); err != nil {
		return err
	}
	w.nodes = make([]*realNode, w.plan.Run.Nodes)
	keys := make([]string, len(w.plan.Names))
	for i, name := range w.plan.Names {
		keys[i] = w.plan.options.Prefix + name
	}
	if err := each(w.nodes, func(i int) (err error) {
		w.nodes[i], err = newRealNode(keys)
		return err
	}); err != nil {
		return err
	}
	for _, f := range w.plan.Faults {
		if f.Trouble != Forge && f.Trouble != Replay {
			continue
		}
		for _, n := range w.nodes {
			n.spy = newSpy(n.server.Addr)
		}
		break
	}
	if w.machine, err = newMachine(w.nodes); err != nil {
		return err
	}
	b := briefing{Resource: w.store.addr(), Plan: w.plan}
	for _, n := range w.nodes {
		b.Nodes = append(b.Nodes, n.proxy.Addr())
	}
	w.members = make([]*remote, w.plan.Run.Clients)
	return each(w.members, func(i int) (err error) {
		w.members[i], err = newRemote(i+1, b)
		return err
	})
}

// each calls one for all of a slice at once.
func each[T any](all []T, one func(i int) error) error {
	errs := make([]error, len(all))
	var making sync.WaitGroup
	for i := range all {
		making.Go(func() { errs[i] = one(i) })
	}
	making.Wait()
	return errors.Join(errs...)
}

func (w *realWorld) strike(f Fault, begin bool) {
	if err := w.nodes[f.Node].strike(f, begin); err != nil {
		w.fail(fmt.Errorf("node %d, %v: %w", f.Node, f, err))
	}
}

func (w *realWorld) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.errs = append(w.errs, err)
}

func (w *realWorld) left() (all []leftover) {
	for i, n := range w.nodes {
		keys, err := n.keys()
		if err != nil {
			// Not a word of what is left there, which is no good sign either.
			all = append(all, leftover{i, "?", err.Error()})
		}
		for key, token := range keys {
			all = append(all, leftover{i, key, token})
		}
	}
	return all
}

func (w *realWorld) weigh() (all []Weight) {
	for i, n := range w.nodes {
		weight, err := n.weigh()
		if err != nil {
			w.fail(fmt.Errorf("node %d, to be weighed: %w", i, err))
			continue
		}
		weight.Node = i
		all = append(all, weight)
	}
	return all
}

// close leaves nothing running, whatever has happened before.
func (w *realWorld) close() error {
	for _, r := range w.members {
		if r != nil {
			r.end()
		}
	}
	if w.machine != nil {
		w.machine.end() // before there is nobody left to ask
	}
	for _, n := range w.nodes {
		if n != nil {
			n.close()
		}
	}
	if w.store != nil {
		w.store.close()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(w.errs...)
}
