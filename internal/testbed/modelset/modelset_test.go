package modelset

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/internal/wire"
)

// TestFleetIsTold: a node keeps what it is told, also after a choice in which it took part, and has the locks that it has.
func TestFleetIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(t, 3)
		d := &wire.Description{Set: "s", Epoch: 1, MaxTTL: 10_000, Members: []string{"node0", "node1", "node2"}}
		if f.Node("node1") != f.Nodes[1] || f.Node("node3") != nil {
			t.Error("nodes are not found by their names")
		}
		if kept := f.Kept(f.Nodes[0]); kept.Description != nil {
			t.Errorf("a new node keeps %s", kept.Text())
		}
		if c := f.Choose(f.Nodes[0], "2", nil); c.Promised != "2" || c.Taken != "" {
			t.Errorf("a node was asked for a promise: %+v", c)
		}
		if c := f.Choose(f.Nodes[0], "1", d); c.Taken != "" {
			t.Errorf("a node has taken a value against its promise: %+v", c)
		}
		if c := f.Choose(f.Nodes[0], "2", d); c.Taken != "2" || c.Value != d.Text() {
			t.Errorf("a node was asked to take a value: %+v", c)
		}
		for _, n := range f.Nodes {
			f.Tell(n, d)
		}
		if got := f.Agrees(f.Nodes...); got.Text() != d.Text() {
			t.Errorf("they keep %s", got.Text())
		}
		f.Nodes[0].SetNX("a", "token", time.Second)
		if f.Tokens(f.Nodes[0]) != 1 || f.Tokens(f.Nodes[1]) != 0 {
			t.Error("locks are not counted")
		}
	})
}
