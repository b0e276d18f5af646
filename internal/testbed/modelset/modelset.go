// Package modelset is a set of model nodes for a test, which can ask them what they keep, and take the steps of a client
// that ends in the middle. The tests of package redlock use it, so it does not import that.
package modelset

import (
	"fmt"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/testbed/model"
	"github.com/quorumlock/redlock/internal/wire"
)

// A Fleet is a number of model nodes, and the processes that use them.
type Fleet struct {
	*testing.T
	Nodes []*model.Node

	hosts int
}

// New returns a fleet of n nodes, node0 and on, that keep no description.
func New(t *testing.T, n int) *Fleet {
	f := &Fleet{T: t}
	for i := range n {
		f.Nodes = append(f.Nodes, model.NewNode(sim.Seed(1), fmt.Sprint("node", i), 400*time.Microsecond)) // one connection: the others join later
	}
	return f
}

// Node returns the node with this name, or nil if there is none.
func (f *Fleet) Node(name string) *model.Node { return model.Named(f.Nodes, name) }

// Process returns a new process, with a name of its own.
func (f *Fleet) Process() *model.Host {
	f.hosts++
	return model.NewHost(sim.Seed(1), fmt.Sprint("c", f.hosts))
}

// Tell has a node keep a description, if it keeps none or an earlier one.
func (f *Fleet) Tell(n *model.Node, d *wire.Description) {
	f.Helper()
	f.TellAs(n, n.Name, d)
}

// TellAs is Tell for a node that has another name in the set.
func (f *Fleet) TellAs(n *model.Node, self string, d *wire.Description) {
	f.Helper()
	hello := wire.Hello{Marked: true, Time: time.Now().UnixMilli()}
	mark, err := f.Join(n, hello)
	hello.Keep, hello.While = wire.Kept{Self: self, Description: wire.ParseDescription(d.Text())}, mark.Value
	if err == nil {
		mark, err = f.Join(n, hello)
	}
	if err != nil || mark.Kept.Description == nil {
		f.Fatal(mark, err)
	}
}

// Kept is what a node keeps of its set.
func (f *Fleet) Kept(n *model.Node) wire.Kept {
	f.Helper()
	mark, err := f.Join(n, wire.Hello{Marked: true, Time: time.Now().UnixMilli()})
	if err != nil {
		f.Fatal(err)
	}
	return mark.Kept
}

// Join connects a new process to a node, and returns what the node says.
func (f *Fleet) Join(n *model.Node, hello wire.Hello) (wire.Mark, error) {
	return n.Dial(f.Process(), time.Second).Connect(f.Context(), hello)
}

// Agrees checks that nodes keep the same description, each under its own name, and returns it.
func (f *Fleet) Agrees(nodes ...*model.Node) *wire.Description {
	f.Helper()
	var first *wire.Description
	for _, n := range nodes {
		told := f.Kept(n)
		if told.Description == nil {
			f.Fatalf("%s keeps nothing", n.Name)
		}
		if first == nil {
			first = told.Description
		}
		if told.Text() != first.Text() || told.Self != n.Name {
			f.Errorf("%s is %s and keeps %s, and another one keeps %s", n.Name, told.Self, told.Text(), first.Text())
		}
	}
	return first
}

// Choose has a node take part in a choice, as a client does that ends before the next step.
func (f *Fleet) Choose(n *model.Node, ballot string, value *wire.Description) wire.Chosen {
	f.Helper()
	l := n.Dial(f.Process(), time.Second)
	if _, err := l.Connect(f.Context(), wire.Hello{}); err != nil {
		f.Fatal(err)
	}
	calls := []model.Call{{Op: wire.Choose, Args: []string{"1", ballot, "", "", ""}}}
	if value != nil {
		calls[0].Args[0], calls[0].Args[2] = fmt.Sprint(value.Epoch), value.Text()
	}
	if value != nil && value.Epoch > 1 {
		calls[0].Args[3] = value.Set
	}
	if err := l.Exec(calls); err != nil || calls[0].Err != nil {
		f.Fatal(err, calls[0].Err)
	}
	c, ok := wire.ParseChosen(calls[0].Value)
	if !ok {
		f.Fatal(calls[0].Value)
	}
	return c
}

// Tokens is how many locks are on a node.
func (f *Fleet) Tokens(n *model.Node) (count int) {
	for range n.Tokens() {
		count++
	}
	return count
}
