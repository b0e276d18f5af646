package lane

import (
	"github.com/quorumlock/redlock/internal/wire"
)

// A View is the members of a set as a client knows them, and how many of them must grant a lock. A round
// goes by one view from its first request to its last vote. A view never changes: a change of members
// makes another one.
type View struct {
	Lanes       []*Lane // to the members
	Quorum      int
	Description *wire.Description // nil: the nodes have none, as far as is known

	size int
}

// spare is how many nodes may become members while a lock is held or waited for. A claim has room for so
// many more than there are lanes when it is made (Set.Room), since each lane guards a part of it. A node
// beyond that has no vote for the lock.
const spare = 8

func newView(lanes []*Lane, quorum int, d *wire.Description) *View {
	v := &View{Lanes: lanes, Quorum: quorum, Description: d}
	for _, n := range lanes {
		v.size = max(v.size, n.Index+1)
	}
	return v
}

// Size is more than the index of any member.
func (v *View) Size() int { return v.size }

// Lane gives the lane to the member at this address; nil: there is none.
func (v *View) Lane(member string) *Lane {
	for _, n := range v.Lanes {
		if n.Member() == member {
			return n
		}
	}
	return nil
}
