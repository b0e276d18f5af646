package redlock

import (
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/wire"
)

// TestOneNodeDecidesNothing: what one member alone keeps moves neither the client nor the other members.
func TestOneNodeDecidesNothing(t *testing.T) {
	onNodes(t, 3, func(f *fleet) {
		lk := f.locker(Options{}, f.nodes...)
		f.locks(lk, true)
		pass(time.Second)
		d := f.agrees(f.nodes...)
		f.tell(f.nodes[0], &wire.Description{Epoch: 5, Set: d.Set, Members: d.Members, Since: d.Since + 1})
		f.locks(lk, true)
		pass(time.Second)
		if d := f.agrees(f.nodes[1:]...); d.Epoch != 1 {
			t.Errorf("they keep %s", d.Text())
		}
	})
}
