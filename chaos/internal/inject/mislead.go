package inject

import (
	"slices"

	"github.com/quorumlock/redlock/internal/wire"
)

// Misled is something else than what a node keeps of its set, as one node may have it: a client has written it that
// may write to the node, or it is from the data of another server. Addresses are those of all nodes, and which draws one
// of many texts.
func Misled(kept wire.Kept, addresses []string, which int) string {
	if kept.Description == nil {
		return ""
	}
	draw := func(n int) int {
		k := which % n
		which /= n
		return k
	}
	kind := draw(6)
	d := kept.Next() // the next one, with the present one in its past: it looks like one that was chosen
	switch kind {
	case 0: // of this node alone
		d.Members, d.Quorum = []string{kept.Self}, 0
	case 1: // of other members, as many as there were
		i := draw(len(addresses))
		others := append(slices.Clone(addresses[i:]), addresses[:i]...)
		d.Members, d.Quorum = others[:min(len(others), max(1, len(kept.Members)-1))], 0
	case 2: // much later, of this node and another one
		d.Epoch += 1 + int64(draw(5))
		d.Members, d.Quorum = []string{kept.Self}, 0
		if other := addresses[draw(len(addresses))]; other != kept.Self {
			d.Members = append(d.Members, other)
		}
	case 3: // of another set, with this node alone
		d.Set, d.Members, d.Quorum = "another", []string{kept.Self}, 0
	case 4: // the data of another member
		return wire.Kept{Self: kept.Members[draw(len(kept.Members))], Description: kept.Description}.String()
	default: // damaged
		return kept.Self + "\n" + kept.Text()[:len(kept.Text())/2]
	}
	return wire.Kept{Self: kept.Self, Description: d}.String()
}

// Snapshot is what a node keeps of its set that is restored from an old snapshot: the description that it kept at
// first, or a late one of a set of the same members, which was made before theirs.
func Snapshot(kept, first wire.Kept, which int) string {
	if kept.Description == nil || first.Description != nil && which%2 == 0 {
		return first.String()
	}
	d := kept.Copy()
	d.Set, d.Epoch, d.Past = "earlier", d.Epoch+int64(which/2%5), nil
	return wire.Kept{Self: kept.Self, Description: d}.String()
}
