package set

import (
	"cmp"
	"slices"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/wire"
)

// A View is the members of a set as a client knows them, and how many of them must grant a lock. A round
// goes by one view from its first request to its last vote. A view never changes: a change of members
// makes another one.
type View struct {
	Lanes       []*lane.Lane // to the members
	Quorum      int
	Description *wire.Description // nil: the nodes have none, as far as is known

	nodes []*node // of the lanes
}

func newView(nodes []*node, quorum int, d *wire.Description) *View {
	v := &View{Quorum: quorum, Description: d, nodes: nodes}
	for _, n := range nodes {
		v.Lanes = append(v.Lanes, n.Lane)
	}
	return v
}

// At is the place of a lane among the members; -1: it leads to none.
func (v *View) At(n *lane.Lane) int { return slices.Index(v.Lanes, n) }

// Member is the address that a member has in the description of its set; its name, as long as that is not known.
func (v *View) Member(i int) string { return cmp.Or(v.nodes[i].vote.Kept().Self, v.nodes[i].Name) }

// Marker is the marker by which a member is known; empty: it has shown none.
func (v *View) Marker(i int) string {
	_, mark := v.nodes[i].vote.LostAt()
	return mark
}

// Lane gives the lane to the member at this address; nil: there is none.
func (v *View) Lane(member string) *lane.Lane {
	for i, n := range v.Lanes {
		if v.Member(i) == member {
			return n
		}
	}
	return nil
}
