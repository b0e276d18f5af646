package coverage

import (
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock/internal/testbed/model"
)

// states are the states of a node that the model tells.
var states = []struct {
	name  string
	state model.State
}{
	{"down", model.Down}, {"hung", model.Hung}, {"requests cut", model.RequestsCut}, {"replies cut", model.RepliesCut}, {"late", model.Late},
	{"loses replies", model.Loses}, {"repeats", model.Repeats}, {"read-only", model.ReadOnly}, {"full", model.Full}, {"refuses", model.Refuses},
	{"mute", model.Mute}, {"another marker", model.Remarked}, {"another's data", model.Alias}, {"clock ahead", model.Ahead}, {"clock behind", model.Behind},
	{"fast clock", model.Fast}, {"held", model.Held}, {"queue", model.Queued}, {"foreign key", model.Foreign}, {"token broken", model.Broken},
	{"in a batch", model.Batched}, {"before the next message", model.Followed},
}

// The rows of nodes behind states.
const (
	well = iota
	noScripts
	noMarker
	youngMarker
	noDescription
	earlier
	later
)

var nodes = &Table{
	Name: "nodes", About: "a state of a node, what it is asked",
	Rows: func() (all []string) {
		for _, s := range states {
			all = append(all, s.name)
		}
		return append(all, "well", "no scripts", "no marker", "young marker", "no description", "earlier description", "later description")
	}(),
	Columns: func() (all []string) {
		for a := range model.Askeds {
			all = append(all, model.Asked(a).String())
		}
		return all
	}(),
}

// ill are the states of a node that is not well, whatever it is asked about.
const ill = model.Down | model.Hung | model.RequestsCut | model.RepliesCut | model.Late | model.Loses | model.Repeats | model.ReadOnly | model.Full |
	model.Refuses | model.Mute | model.Remarked | model.Alias | model.Ahead | model.Behind | model.Foreign

// A watch has what one node was asked. The node's mutex protects reached.
type watch struct {
	number  int
	epochs  []atomic.Int64 // of the descriptions of all nodes of the world, when they were last asked
	young   time.Duration  // a marker that is not older is that of a node without a vote
	reached [model.Askeds]uint32
}

// Watch counts what nodes are asked from then on. A marker is young for the length of a quarantine. Nil: it does nothing.
func (s *Sheet) Watch(nodes []*model.Node, quarantine time.Duration) {
	if s == nil {
		return
	}
	epochs := make([]atomic.Int64, len(nodes))
	for i, n := range nodes {
		w := &watch{number: i, epochs: epochs, young: quarantine}
		s.watches = append(s.watches, w)
		n.Watch(w.see)
	}
}

// see counts one thing that the node is asked.
func (w *watch) see(s model.Sight) {
	rows := uint32(0)
	for i := range states {
		if s.State&states[i].state != 0 {
			rows |= 1 << i
		}
	}
	more := func(row int, is bool) {
		if is {
			rows |= 1 << (len(states) + row)
		}
	}
	marked, described := s.State&model.Marked != 0, s.State&model.Described != 0
	young := marked && s.Age < w.young
	more(well, s.State&ill == 0 && s.State&model.Scripted != 0 && described && marked && !young)
	more(noScripts, s.State&model.Scripted == 0)
	more(noMarker, !marked)
	more(youngMarker, young)
	more(noDescription, !described)
	w.epochs[w.number].Store(s.Epoch)
	if described {
		ahead, behind := 0, 0
		for i := range w.epochs {
			switch other := w.epochs[i].Load(); {
			case other > s.Epoch:
				ahead++
			case i != w.number && other > 0 && other < s.Epoch:
				behind++
			}
		}
		more(earlier, ahead > 1) // a single node with a later one may keep a description that the set has never chosen
		more(later, behind > 0 && behind == len(w.epochs)-1)
	}
	w.reached[s.Asked] |= rows
}

// into adds what was counted to a sheet, when nothing happens any more.
func (w *watch) into(s *Sheet) {
	for asked, rows := range w.reached {
		for row, name := range nodes.Rows {
			if rows&(1<<row) != 0 {
				s.mark(nodes, name, nodes.Columns[asked])
			}
		}
	}
}
