package lane

import (
	"slices"

	"github.com/quorumlock/redlock/internal/wire"
)

// A View is the members of a set as a client knows them, and how many of them must grant a lock. A round
// goes by one view from its first request to its last vote. A view never changes: a change of members
// makes another one.
type View struct {
	Lanes       []*Lane // to the members
	Quorum      int
	Description *wire.Description // nil: the nodes have none, as far as is known
}

// At is the place of a lane among the members; -1: it leads to none.
func (v *View) At(n *Lane) int { return slices.Index(v.Lanes, n) }

// Lane gives the lane to the member at this address; nil: there is none.
func (v *View) Lane(member string) *Lane {
	for _, n := range v.Lanes {
		if n.Member() == member {
			return n
		}
	}
	return nil
}
