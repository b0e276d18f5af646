// Package miniarena carries plans out over miniredis behind pipes, in virtual time.
package miniarena

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/chaos/internal/client"
	"github.com/quorumlock/redlock/chaos/internal/drive"
	"github.com/quorumlock/redlock/chaos/internal/scenario"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/testbed/memredis"
	"github.com/quorumlock/redlock/internal/testbed/model"
	"github.com/quorumlock/redlock/internal/wire"
)

// Run carries a plan out. A seed gives nearly the same history every time.
func Run(p *scenario.Plan) (*history.History, error) {
	return drive.Virtually(p, func() drive.World { return newWorld(p) })
}

type world struct {
	seed  sim.Seed
	nodes []*node
	keys  []string

	mu        sync.Mutex
	processes []*process
}

func newWorld(p *scenario.Plan) *world {
	w := &world{seed: sim.Seed(p.Run.Seed).For(p.Run.Scenario)}
	for _, name := range p.Names {
		w.keys = append(w.keys, p.Options.Prefix+name)
	}
	for i := range p.Run.Nodes {
		n := &node{Node: memredis.NewNode(i), seed: w.seed.For(fmt.Sprintf("node%d", i)), rtt: p.RTT}
		n.latency(0)
		w.nodes = append(w.nodes, n)
	}
	return w
}

func (w *world) Enter(_ int, name string) (client.Process, error) {
	p := &process{world: w, name: name, host: model.NewHost(w.seed, name), sockets: make(map[*socket]struct{})}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.processes = append(w.processes, p)
	return p, nil
}

func (w *world) Inject(f history.Fault, begin bool) { w.nodes[f.Node].inject(f, begin, w.keys) }

// at gives the node with an address.
func (w *world) at(addr string) *node {
	return w.nodes[slices.Index(w.Addrs(), addr)]
}

func (w *world) Addrs() (all []string) {
	for _, n := range w.nodes {
		all = append(all, n.Options().Addr)
	}
	return all
}

func (w *world) Kept() (kept []wire.Kept) {
	for _, n := range w.nodes {
		text, _ := n.Engine.Mini().DB(0).Get(script.Told)
		kept = append(kept, wire.ParseKept(text))
	}
	return kept
}

func (w *world) Keys() (all []drive.Key) {
	for i := range w.nodes {
		all = append(all, w.on(i)...)
	}
	return all
}

// on lists the keys on a node.
func (w *world) on(i int) (all []drive.Key) {
	engine := w.nodes[i].Engine
	for _, key := range engine.Keys() {
		db := engine.Mini().DB(0)
		token, err := db.Get(key)
		if err == nil {
			all = append(all, drive.Key{Node: i, Key: key, Token: token})
			continue
		}
		set, err := db.SortedSet(key)
		if err != nil { // the key is no lock
			all = append(all, drive.Key{Node: i, Key: key, Token: ""})
		}
		for _, token := range slices.Sorted(maps.Keys(set)) {
			if drive.Counts(set[token], time.Now()) {
				all = append(all, drive.Key{Node: i, Key: key, Token: token})
			}
		}
	}
	return all
}

func (w *world) Weigh() (all []history.Weight) {
	const perKey, perOne = 72, 24 // the bytes that Redis needs for a key, and for each member of a set
	for i, n := range w.nodes {
		_ = n.Engine.Keys() // drops expired keys
		mini, weight := n.Engine.Mini(), history.Weight{Node: i}
		for _, key := range mini.Keys() {
			weight.Keys++
			weight.Bytes += perKey + len(key)
			if value, err := mini.Get(key); err == nil {
				weight.Bytes += len(value)
			} else if set, err := mini.SortedSet(key); err == nil {
				for member := range set {
					weight.Bytes += perOne + len(member)
				}
			}
		}
		all = append(all, weight)
	}
	return all
}

// Close returns an error for connections that Lockers have left open: by now all must be closed.
func (w *world) Close() error {
	synctest.Wait()
	var errs []error
	for _, p := range w.processes {
		for _, c := range p.strangers {
			_ = c.Close()
		}
		if n := p.open(); n > 0 && p.strangers == nil {
			errs = append(errs, fmt.Errorf("%s has left %d connections open", p.name, n))
		}
	}
	for _, n := range w.nodes {
		errs = append(errs, n.strange())
		n.Close()
	}
	return errors.Join(errs...)
}
