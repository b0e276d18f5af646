// Package realarena carries plans out with redis-server processes behind proxies and with
// clients in processes of their own, in real time.
package realarena

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/chaos/internal/client"
	"github.com/quorumlock/redlock/chaos/internal/drive"
	"github.com/quorumlock/redlock/chaos/internal/inject"
	"github.com/quorumlock/redlock/chaos/internal/scenario"
	"github.com/quorumlock/redlock/internal/recording"
	"github.com/quorumlock/redlock/internal/testbed/redisproc"
	"github.com/quorumlock/redlock/internal/wire"
)

// Cannot are the kinds of fault that this arena cannot inject.
var Cannot = []history.FaultKind{
	history.Repeat, history.RepeatLate, // TCP delivers once, and nothing on the way here sends again
	history.Loading,                                         // would need a large data set, in which leftovers could not be found
	history.Step, history.Clock, history.Skew, history.Boot, // all processes have the one clock of this machine
	history.Values,                                 // nothing here may leave megabytes on a server that is killed
	history.Mislead, history.Restore, history.Copy, // the model has them
	history.Suspend, history.Still, // and this machine can only be suspended from outside
}

// Run carries a plan out. [ClientMain] must have been called before.
func Run(p *scenario.Plan) (*history.History, error) { return RunBeside(p, nil) }

// RunBeside is Run with something beside it, which begins before the clients do: beside gets the nodes
// as clients know them, the servers' own addresses, not through the proxies, and when the history begins, and
// returns what ends it. The servers tell of changes of keys.
func RunBeside(p *scenario.Plan, beside func(nodes, servers []string, start time.Time) (end func())) (*history.History, error) {
	if os.Getenv(ClientVariable) != "" {
		return nil, errors.New("chaos: this process is a client in the real arena itself: ClientMain must be called first of all")
	}
	w := &world{plan: p}
	if beside != nil {
		w.args = []string{"--notify-keyspace-events", recording.Notify}
	}
	defer w.Close()
	if err := w.open(); err != nil {
		return nil, fmt.Errorf("chaos: %w", err)
	}
	d := drive.New(p, w)
	w.store.serve(client.NewMemory(d.Recorder.Note))
	w.machine.begin(d.Recorder)
	d.Join = func(number int, as client.Role) (drive.Member, error) {
		r := w.members[number-1]
		r.role = as
		r.rec, r.leftovers = d.Recorder, d.Leftovers
		return r, nil
	}
	d.Settle, d.Slow = poll, true
	if beside != nil {
		var own []string
		for _, n := range w.nodes {
			own = append(own, n.server.Addr)
		}
		defer beside(w.Addrs(), own, d.Recorder.Start)()
	}
	return d.Run(), nil
}

// poll waits for some time, or until done has reported true several times in a row: messages under
// way may come late.
func poll(limit time.Duration, done func() bool) {
	const pause, often = 50 * time.Millisecond, 3
	for deadline, times := time.Now().Add(limit), 0; times < often && time.Now().Before(deadline); time.Sleep(pause) {
		if times++; !done() {
			times = 0
		}
	}
}

// A world belongs to one plan: so nothing that a run leaves behind can affect the next one.
type world struct {
	plan    *scenario.Plan
	args    []string // of the servers, besides those that all have
	nodes   []*node
	store   *shop
	machine *machine
	members []*remote // by number, from 1; a process that was not needed never works

	remaking sync.Mutex // there is one operator
	remade   int        // how many sets it has restored

	mu   sync.Mutex
	errs []error
}

// open starts all processes, so that no later step has to wait for one.
func (w *world) open() (err error) {
	if w.store, err = newShop(); err != nil {
		return err
	}
	has := func(kind history.FaultKind) bool {
		return slices.ContainsFunc(w.plan.Faults, func(f history.Fault) bool { return f.Kind == kind })
	}
	start := redisproc.Start
	if has(history.Slew) {
		start = redisproc.StartWithClock
	}
	if has(history.PowerCut) {
		w.args = append(w.args, "--appendfsync", "everysec")
	}
	if has(history.DiskFull) {
		redisproc.IgnoreFileLimit()
	}
	w.nodes = make([]*node, w.plan.Run.Nodes)
	keys := make([]string, len(w.plan.Names))
	for i, name := range w.plan.Names {
		keys[i] = w.plan.Options.Prefix + name
	}
	if err := each(w.nodes, func(i int) (err error) {
		w.nodes[i], err = newNodeBy(start, keys, w.args...)
		return err
	}); err != nil {
		return err
	}
	for i, n := range w.nodes {
		n.others = slices.Concat(w.nodes[i+1:], w.nodes[:i])
		if has(history.OldFile) || has(history.PowerCut) {
			n.diary.keep(n.server.Dir())
		}
	}
	if w.machine, err = newMachine(w.nodes); err != nil {
		return err
	}
	b := briefing{Resource: w.store.addr(), Plan: w.plan}
	b.Nodes = w.Addrs()
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

func (w *world) Inject(f history.Fault, begin bool) {
	if err := w.nodes[f.Node].inject(f, begin); err != nil {
		w.fail(fmt.Errorf("node %d, %v: %w", f.Node, f, err))
	}
}

func (w *world) Addrs() (all []string) {
	for _, n := range w.nodes {
		all = append(all, n.proxy.Addr())
	}
	return all
}

// Kept goes by the nodes that say now what they have.
func (w *world) Kept() (kept []wire.Kept) {
	for _, n := range w.nodes {
		kept = append(kept, n.told())
	}
	return kept
}

// Remake is what an operator does with redlock members restore (inject.Restored). It does not answer either if a node keeps
// something else by then, or dies: the operator looks again.
func (w *world) Remake(members []string, _ bool) (lost []int, answer bool) {
	w.remaking.Lock()
	defer w.remaking.Unlock()
	kept, addrs := make(map[string]wire.Kept), w.Addrs()
	texts := make([]string, len(w.nodes))
	for i, n := range w.nodes {
		text, err := n.keeps()
		if texts[i] = text; err == nil {
			kept[addrs[i]] = wire.ParseKept(text)
		}
	}
	set, bare, answer := inject.Restored(kept, members)
	if set == nil {
		return nil, answer
	}
	w.remade++
	set.Set = fmt.Sprint("restored.", w.remade)
	for i, n := range w.nodes {
		if set.Has(addrs[i]) {
			answer = answer && n.remake(wire.Kept{Self: addrs[i], Description: set}, texts[i])
		}
		if slices.Contains(bare, addrs[i]) {
			lost = append(lost, i)
		}
	}
	return lost, answer
}

func (w *world) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.errs = append(w.errs, err)
}

func (w *world) Keys() (all []drive.Key) {
	for i, n := range w.nodes {
		keys, err := n.keys()
		if err != nil {
			// The keys on this node are not known, which is an error as well.
			all = append(all, drive.Key{Node: i, Key: "?", Token: err.Error()})
		}
		for key, token := range keys {
			all = append(all, drive.Key{Node: i, Key: key, Token: token})
		}
	}
	return all
}

func (w *world) Weigh() (all []history.Weight) {
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

// Close ends all processes, whatever has happened before.
func (w *world) Close() error {
	for _, r := range w.members {
		if r != nil {
			r.end()
		}
	}
	if w.machine != nil {
		w.machine.end() // before the servers are gone
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
