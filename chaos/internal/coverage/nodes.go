package coverage

import (
	"sync"
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
	epochs  *epochs
	young   time.Duration // a marker that is not older is that of a node without a vote
	reached [model.Askeds]uint32
}

// epochs has the epochs of the descriptions of all nodes of a world, when they were last asked; 0: none. Nobody can say what
// comes first of that which happens at different nodes at one instant, so a node does not see what others are asked then.
type epochs struct {
	mu    sync.Mutex // protects nodes
	nodes []kept
}

// A kept is what a node kept.
type kept struct {
	at     time.Time // when it was last asked
	epoch  int64     // then
	before int64     // when it was asked before that
}

// set records a node's epoch at an instant, and returns how many others have a later one, and how many an earlier one.
func (e *epochs) set(node int, epoch int64, now time.Time) (later, earlier int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n := &e.nodes[node]; !n.at.Equal(now) {
		n.at, n.before = now, n.epoch
	}
	e.nodes[node].epoch = epoch
	for i := range e.nodes {
		other := e.nodes[i].epoch
		if e.nodes[i].at.Equal(now) {
			other = e.nodes[i].before
		}
		switch {
		case i == node:
		case other > epoch:
			later++
		case other > 0 && other < epoch:
			earlier++
		}
	}
	return later, earlier
}

// Watch counts what nodes are asked from then on. A marker is young for the length of a quarantine. Nil: it does nothing.
func (s *Sheet) Watch(nodes []*model.Node, quarantine time.Duration) {
	if s == nil {
		return
	}
	epochs := &epochs{nodes: make([]kept, len(nodes))}
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
	ahead, behind := w.epochs.set(w.number, s.Epoch, time.Now())
	if described {
		more(earlier, ahead > 1) // a single node with a later one may keep a description that the set has never chosen
		more(later, behind > 0 && behind == len(w.epochs.nodes)-1)
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
