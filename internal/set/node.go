package set

import (
	"cmp"
	"slices"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/vote"
	"github.com/quorumlock/redlock/internal/wire"
)

// A node is the lane to a node, what is known of its vote, and what the set has noted of it. It is the lane's Node, and its
// server's Session (session.go).
type node struct {
	*lane.Lane
	vote *vote.Node
	set  *Set

	// Under the set's mutex.
	considered int   // how many changes look at whether the node can become a member: it is not retired
	stranger   bool  // the operator was told that the node is no member
	epoch      int64 // the last description of the set of which the node is known to be a member, or to be none any more

	// The same, of a node that keeps no description.
	tried   *wire.Description // the one with which it was last asked to join again
	offered *wire.Description // the one that it was told when it was last joined
	untaken *wire.Description // offered, and it kept none when it had been joined
}

// newNode makes a node, and the lane to it. Under the mutex.
func (s *Set) newNode(name string, tried chan<- int) *node {
	i := s.made
	s.made++
	n := &node{set: s, vote: vote.NewNode(name, &s.cfg.Config, s.group)}
	n.Lane = lane.New(i, name, s.open(i, name, n), n, &s.cfg.Config.Config, tried)
	return n
}

// end ends the lane, which has been retired.
func (n *node) end() {
	n.vote.Close()
	n.Close()
}

// addNode makes one more node. Under the mutex.
func (s *Set) addNode(nodes *[]*node, name string) *node {
	n := s.newNode(name, nil)
	*nodes = append(*nodes, n)
	return n
}

// rejoinAll has nodes joined again: each says what it keeps by now.
func rejoinAll(nodes []*node) {
	for _, n := range nodes {
		n.Rejoin()
	}
}

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
