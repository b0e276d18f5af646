// Package modelarena carries plans out over nodes that are models, in virtual time.
package modelarena

import (
	"fmt"
	"slices"
	"sync"

	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/chaos/internal/client"
	"github.com/quorumlock/redlock/chaos/internal/drive"
	"github.com/quorumlock/redlock/chaos/internal/inject"
	"github.com/quorumlock/redlock/chaos/internal/scenario"
	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/testbed/model"
	"github.com/quorumlock/redlock/internal/wire"
)

// Run carries a plan out. A seed gives the same history every time.
func Run(p *scenario.Plan) (*history.History, error) {
	return drive.Virtually(p, func() drive.World { return NewWorld(p) })
}

// Cannot are the kinds of fault that this arena cannot inject: its nodes have no files, and no clock is slewed.
var Cannot = []history.FaultKind{
	history.CutFile, history.FlipFile, history.OldFile, history.OtherFile, history.PowerCut, history.DiskFull, history.Slew,
}

// A World has the nodes of one plan.
type World struct {
	seed  sim.Seed
	plan  *scenario.Plan
	nodes []*model.Node

	remade int // how many sets an operator has restored

	mu    sync.Mutex        // protects first: faults of one instant are injected side by side
	first map[int]wire.Kept // by node: what it kept at the first fault of any node, if it has kept anything
}

// NewWorld makes the nodes of a plan.
func NewWorld(p *scenario.Plan) *World {
	w := &World{seed: sim.Seed(p.Run.Seed).For(p.Run.Scenario), plan: p, first: make(map[int]wire.Kept)}
	for i := range p.Run.Nodes {
		n := model.NewNode(w.seed, fmt.Sprintf("node%d", i), p.RTT)
		n.Rate(p.Rates[i])
		if newer := w.seed.For("native"); newer.Of(i).Float() < newer.Float() { // all, some or none of them
			n.Native()
		}
		w.nodes = append(w.nodes, n)
	}
	p.Sheet.Watch(w.nodes, p.Quarantine())
	return w
}

// at gives the node with an address, which is its name.
func (w *World) at(addr string) *model.Node {
	return model.Named(w.nodes, addr)
}

// Addrs lists the nodes' addresses.
func (w *World) Addrs() (all []string) {
	for _, n := range w.nodes {
		all = append(all, n.Name)
	}
	return all
}

func (w *World) Kept() (kept []wire.Kept) {
	for _, n := range w.nodes {
		kept = append(kept, n.Kept())
	}
	return kept
}

func (w *World) Enter(_ int, name string) (client.Process, error) {
	return &process{world: w, host: model.NewHost(w.seed, name)}, nil
}

func (w *World) Close() error { return nil }

func (w *World) Weigh() (all []history.Weight) {
	for i, n := range w.nodes {
		keys, bytes := n.Size()
		all = append(all, history.Weight{Node: i, Keys: keys, Bytes: bytes})
	}
	return all
}

func (w *World) Keys() (all []drive.Key) {
	for i, n := range w.nodes {
		for key, token := range n.Tokens() {
			all = append(all, drive.Key{Node: i, Key: key, Token: token})
		}
	}
	for i := range all {
		all[i].Ghost = w.nodes[all[i].Node].Ghost(all[i].Key)
	}
	return all
}

// sayings has the node's answers to everything while it has such a fault.
var sayings = map[history.FaultKind]error{
	history.Loading: model.Error("LOADING Redis is loading the dataset in memory"),
	history.Locked:  model.Error("NOAUTH Authentication required."),
	history.Crowded: model.Error("ERR max number of clients reached"),
	history.Busy:    model.Error("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."),
}

func (w *World) Inject(f history.Fault, begin bool) {
	n := w.nodes[f.Node]
	w.remember()
	if f.Kind == history.CutRequests && w.plan.Scenario.Stalls {
		n.Stall(begin)
		return
	}
	onLink(n, f, begin)
	if begin {
		once(n, f)
	}
	if inject.Power(n, f, begin) {
		return
	}
	switch f.Kind {
	case history.Mislead, history.Restore:
		w.mislead(n, f, begin)
	case history.Copy:
		if begin {
			n.Kill()
			n.Copy(w.nodes[f.Times%len(w.nodes)])
		} else {
			n.Forget()
		}
	case history.Mute:
		n.Mute(begin)
	case history.Churn:
		n.Churn(begin)
	case history.Full:
		n.Full(begin)
	case history.ReadOnly:
		n.ReadOnly(begin)
	case history.Loading, history.Locked, history.Crowded, history.Busy:
		if begin {
			n.Refuse(sayings[f.Kind])
		} else {
			n.Refuse(nil)
		}
	case history.Foreign:
		for _, name := range w.plan.Names {
			if begin {
				n.Put(w.plan.Options.Prefix + name)
			} else {
				n.Take(w.plan.Options.Prefix + name)
			}
		}
	case history.Step:
		if !begin && f.For > 0 {
			n.Step(-f.By)
		}
	case history.LoseReplies:
		if !begin && f.For > 0 {
			n.Lose(0)
		}
	}
}

// remember takes the nodes' snapshots, when the set has been made.
func (w *World) remember() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, n := range w.nodes {
		if t := n.Kept(); t.Description != nil && w.first[i].Description == nil {
			w.first[i] = t
		}
	}
}

// mislead begins or ends a fault of a node that keeps something else than the description of its set.
func (w *World) mislead(n *model.Node, f history.Fault, begin bool) {
	switch {
	case f.Kind == history.Mislead && begin:
		if text := inject.Misled(n.Kept(), w.Addrs(), f.Times); text != "" {
			n.Keep(text)
		}
	case f.Kind == history.Mislead:
		n.Forget()
	case begin:
		n.Kill()
	default:
		w.mu.Lock()
		first := w.first[f.Node]
		w.mu.Unlock()
		n.Restore(inject.Snapshot(n.Kept(), first, f.Times))
	}
}

// Remake is what an operator does with redlock members restore who knows that these nodes are the set (inject.Restored). Then
// all other nodes that keep the description of another set forget that, as before they can become members, if forget is set.
func (w *World) Remake(members []string, forget bool) (lost []int, answer bool) {
	kept := make(map[string]wire.Kept)
	var given []string
	for _, n := range w.nodes {
		if n.Up() {
			kept[n.Name] = n.Kept()
		}
		if slices.Contains(members, n.Name) {
			given = append(given, n.Name)
		}
	}
	set, bare, answer := inject.Restored(kept, given)
	if set != nil {
		set.Set = fmt.Sprint("restored.", set.Epoch-1)
		if w.remade++; w.plan.Scenario.Moves { // the epochs begin again when a set is made anew
			set.Set = fmt.Sprint("restored.", w.remade)
		}
	}
	for i, n := range w.nodes {
		if set != nil && set.Has(n.Name) {
			n.Remake(wire.Kept{Self: n.Name, Description: set}.String())
		}
		if slices.Contains(bare, n.Name) {
			lost = append(lost, i)
		}
	}
	for _, n := range w.nodes {
		foreign := forget && n.Kept().Description != nil && !slices.Contains(members, n.Name)
		for _, addr := range members {
			told := w.at(addr).Kept()
			foreign = foreign && told.Description != nil && told.Set != n.Kept().Set
		}
		if foreign {
			n.Forget()
		}
	}
	return lost, answer
}

// onLink begins or ends a fault of the network between the clients and a node.
func onLink(n *model.Node, f history.Fault, begin bool) {
	switch f.Kind {
	case history.Hang:
		n.Hang(begin)
	case history.Slow:
		n.Delay(inject.During(begin, f.By), 0)
	case history.Jitter:
		n.Delay(0, inject.During(begin, f.By))
	case history.Cut:
		n.Cut(begin, begin)
	case history.CutRequests:
		n.Cut(begin, false)
	case history.CutReplies:
		n.Cut(false, begin)
	case history.Part:
		n.Cut(begin, begin)
		if !begin {
			n.Reset()
		}
	}
}

// once injects a fault that has no end, or ends by itself.
func once(n *model.Node, f history.Fault) {
	switch f.Kind {
	case history.Reset:
		n.Reset()
	case history.LoseReplies:
		n.Lose(f.Times)
	case history.TearReplies:
		n.Tear(f.Times)
	case history.Repeat:
		n.Repeat(f.Times)
	case history.RepeatLate:
		n.RepeatLate(f.Times, f.By)
	case history.Flush:
		n.Flush()
	case history.Evict:
		n.Evict(f.Times)
	case history.FlushScripts:
		n.FlushScripts()
	case history.Step:
		n.Step(f.By)
	case history.Deafen:
		n.DropSubscriptions()
	}
}
