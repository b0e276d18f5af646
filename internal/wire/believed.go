package wire

// A Witness is a node whose word counts for which description a client goes by.
type Witness struct {
	Name string // its address, as the client has it
	Kept        // what it keeps
	Met  bool   // it has said so; false: it has not been heard of, and its word counts for nothing
}

// Believed gives the description by which a client goes on that goes by the known one, nil if it knows none. It returns
// nil if there is none. The witnesses are the members by the known description, and without one the nodes that the
// program was given.
//
// No node decides alone: it may have been restored from an old snapshot, be a copy of another server, or keep what a
// client has written that may write to it. So a description is believed if a majority of the witnesses keeps it, or
// a later one that has it in its past. The client then goes by that, its members are the witnesses, and it asks
// again: step by step along the chain, from each description to a later one for which a majority of the members
// of the former vouches.
//
// That is safe, since a description is chosen by a majority of the members before (choose.lua), and is followed by
// another one only when a majority of these keeps it (change.go). So what a minority shows is nothing that the
// client would have to know: no later description than the next one has been chosen, and by that none counts that
// needs a vote of the client's majority (chain.pml in docs/model).
//
// It does not end the way of a client that has slept through many changes: when a description comes after the next
// one, a majority of the members before the next one keeps that, or a later one; a node that is removed keeps the
// description that removes it, and answers as long as it runs. Members need not keep the same one: of three that keep
// the epochs 3, 5 and 7, the second one and the third vouch for 5. That takes the past: without it a node that keeps
// 7 would vouch for whatever a wrong node calls 5.
//
// Half of the witnesses suffice if all others have been heard of, and keep none: they have lost their data, and no
// other half can show anything else. Nobody tells them again what they have kept if they are members no more. But of the
// nodes that a program was given, one that keeps none may never have been a member: it counts only as one by the
// description that the other half keeps.
//
// A first description of just the given nodes is believed of one of them, if with those that keep none they are a
// majority: the set is the one that would be made now. So a set that was never changed heals by itself when most
// members lose their data.
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
