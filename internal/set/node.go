package set

import (
	"cmp"
	"slices"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/vote"
	"github.com/quorumlock/redlock/internal/wire"
)

// A node is one server as the set knows it: the lane to it (its ordered queue of requests), what is known of its vote, and
// what the set has noted. It is the lane's Node, and the Session of the lane's Server (session.go).
type node struct {
	*lane.Lane
	vote *vote.Node
	set  *Set

	// Set.mu protects these.
	considered int   // how many changes are looking whether it can become a member (candidate): its lane is not retired meanwhile
	stranger   bool  // Events.Warning has said that the node is of no use (strangers)
	epoch      int64 // the latest epoch of the set under which the node is known to be, or to have been, a member; 0: none

	// And these, of a node that keeps no description of the set. Each is nil, or what Set.known was
	tried   *wire.Description // when the node was last asked to join again
	offered *wire.Description // when it was last joined: the join offered it to the node
	untaken *wire.Description // offered, if the node kept none all the same
}

// newNode makes a node and its lane, to which it passes tried (lane.New; may be nil). Caller holds s.mu.
func (s *Set) newNode(name string, tried chan<- int) *node {
	i := s.made
	s.made++
	n := &node{set: s, vote: vote.NewNode(name, &s.cfg.Config, s.group)}
	n.Lane = lane.New(i, name, s.open(i, name, n), n, &s.cfg.Config.Config, tried)
	return n
}

// end makes the lane send what it has, and then end; it does not wait. Call it once, after n.Retire has returned true.
func (n *node) end() {
	n.vote.Close()
	n.Close()
}

// addNode makes a node and its lane, and appends the node to *nodes, which the caller stores in s.nodes. Caller holds s.mu.
func (s *Set) addNode(nodes *[]*node, name string) *node {
	n := s.newNode(name, nil)
	*nodes = append(*nodes, n)
	return n
}

// rejoinAll makes the lanes join the nodes again, soon: each node says which description of the set it keeps, and is given
// the client's, if it keeps an earlier one or may have it again (Set.offer).
func rejoinAll(nodes []*node) {
	for _, n := range nodes {
		n.Rejoin()
	}
}

// A View is the members of a set as a client knows them, and how many of them must grant a lock. A round (one step of a lock
// at all nodes) goes by one view from its first request to its last vote. No view changes: new members make a new one.
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

// At returns the index of the lane n in v.Lanes; -1: n leads to no member of v.
func (v *View) At(n *lane.Lane) int { return slices.Index(v.Lanes, n) }

// Member returns the address that member i of v.Lanes says it has in the set; until it has said so, the name of its lane.
func (v *View) Member(i int) string { return cmp.Or(v.nodes[i].vote.Kept().Self, v.nodes[i].Name) }

// Marker returns the marker of member i of v.Lanes, a key that shows that the node has lost no data; "": it has shown none.
func (v *View) Marker(i int) string {
	_, mark := v.nodes[i].vote.LostAt()
	return mark
}

// Lane returns the lane to the member with this address in the set's description; nil: there is none.
func (v *View) Lane(member string) *lane.Lane {
	for i, n := range v.Lanes {
		if v.Member(i) == member {
			return n
		}
	}
	return nil
}
