package drive

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/chaos/internal/scenario"
)

// lostNodes are three nodes of which two have lost their data, and the operator restores the set at the third attempt.
type lostNodes struct {
	Nodes
	tries int
}

func (n *lostNodes) Addrs() []string { return []string{"a", "b", "c"} }

func (n *lostNodes) Remake(members []string, _ bool) ([]int, bool) {
	if n.tries++; n.tries < 3 || len(members) != 3 {
		return nil, false
	}
	return []int{0, 2}, true
}

// TestLossIsRecorded: a set is lost from when the last of these members has lost its data until the operator looks, who
// restores it then. While one of them is losing them, it is not known since when.
func TestLossIsRecorded(t *testing.T) {
	empty := func(node int) history.Fault { return history.Fault{Kind: history.KillEmpty, Node: node} }
	for name, tt := range map[string]struct {
		more func(d *Driver)
		want string
	}{
		"two members":             {func(*Driver) {}, "[2s 10.1s]"},
		"a fault of no data":      {func(d *Driver) { d.loses(history.Fault{Kind: history.Kill}, true) }, "[2s 10.1s]"},
		"another member, later":   {func(d *Driver) { d.loses(empty(1), true); d.loses(empty(1), false) }, "[2s 10.1s]"},
		"a member again":          {func(d *Driver) { d.loses(empty(2), true); d.loses(empty(2), false) }, "[10s 10.1s]"},
		"a member just now":       {func(d *Driver) { d.loses(empty(2), true) }, "[]"},
		"a member, in two faults": {func(d *Driver) { d.loses(empty(2), true); d.loses(empty(2), true); d.loses(empty(2), false) }, "[]"},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := New(&scenario.Plan{Scenario: new(scenario.Scenario), Run: history.Head{Nodes: 3}}, new(lostNodes))
			d.Slow = true
			d.loses(empty(0), true)
			time.Sleep(time.Second)
			d.loses(empty(0), false)
			d.loses(empty(2), true)
			time.Sleep(time.Second)
			d.loses(empty(2), false)
			time.Sleep(8 * time.Second)
			tt.more(d)
			d.remake(history.Fault{Kind: history.Remake})
			got := []time.Duration{}
			for _, e := range d.Recorder.Sorted() {
				got = append(got, e.At, e.Until)
			}
			if fmt.Sprint(got) != tt.want {
				t.Errorf("%s: the set was lost from and to %v, want %s", name, got, tt.want)
			}
		})
	}
}
