package wire

// A Witness is a node that counts when a client decides which description of the set (members, settings) to believe.
type Witness struct {
	Name string // the address by which the client knows the node
	Kept        // the description that the node keeps
	Met  bool   // the node has said what it keeps; false: the client has not heard from it, and it counts for nothing
}

// Believed returns the description by which a client is to go on; nil: it stays with known, the one by which it goes now
// (nil: it has none), which Believed never returns. The client calls it until the result is nil. The witnesses are the
// members by known; without known, the nodes that the program was given.
//
// No node decides alone: a node may have been restored from an old snapshot, may be a copy of another server, or may keep
// what any client with write access has written. So a description is believed if a majority of the witnesses keeps it, or
// keeps a later one that names it among those before (Past). The client then goes by that one, and its members become the
// witnesses: step by step, from each description to a later one for which a majority of the members of the former vouches.
//
// That is safe. A majority of the members before chooses a description (choose.lua), and the next one follows only when a
// majority of them keeps it (change.go). So the client need not follow a description that only a minority shows: no later
// one than the next has been chosen. The majority that the client has heard does not keep the next one, so no lock that
// needs a vote of that majority counts by it (chain.pml in docs/model).
//
// A client that has slept through many changes still arrives. When the description after the next one is chosen, a majority
// of the members before the next one keeps the next or a later one, and a node that is removed keeps the description that
// removes it, and answers as long as it runs. Members need not keep the same one: of three that keep epochs 3, 5 and 7, the
// second and the third vouch for 5. That takes the Past: else 7 would vouch for whatever a faulty node calls 5.
//
// Half of the witnesses suffice if all others have been heard, and keep none: these have lost their data, no other half can
// show anything else, and no client tells them again what they kept if they are not members any more. But of the nodes that
// a program was given, one that keeps none may never have been a member: it counts only if the others' description has it.
//
// While the client has none, a first description (epoch 1) whose members are exactly the given nodes is believed even if
// only one of them keeps it, when those that keep it or none are a majority: a new set would have the same members. So a set
// that was never changed heals by itself when most members, but not all, lose their data.
func Believed(witnesses []Witness, known *Description) (best *Description) {
	later := func(d *Description) bool {
		switch {
		case best == nil:
			return true
		case known != nil && (d.Set == known.Set) != (best.Set == known.Set):
			return d.Set == known.Set
		}
		return d.Epoch > best.Epoch
	}
	for _, w := range witnesses {
		if w.Description == nil || known != nil && w.Set == known.Set && w.Epoch <= known.Epoch {
			continue
		}
		if later(w.Description) && believed(witnesses, w.Description, known) {
			best = w.Description
		}
	}
	return best
}

// believed reports whether enough witnesses keep d, or vouch for it. The rules, and what known is, are at Believed.
func believed(witnesses []Witness, d, known *Description) bool {
	keep, none, given := 0, 0, 0
	for _, w := range witnesses {
		switch {
		case w.Follows(d):
			keep++
		case w.Met && w.Description == nil && w.Damage == nil && (known != nil || d.Has(w.Name)):
			none++
		}
		if d.Has(w.Name) {
			given++
		}
	}
	n := len(witnesses)
	switch {
	case 2*keep > n:
		return true
	case 2*keep == n:
		return keep+none == n
	}
	return known == nil && d.Epoch == 1 && given == n && n == len(d.Members) && 2*(keep+none) > n
}
