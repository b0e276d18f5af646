package inject

import "github.com/quorumlock/redlock/internal/wire"

// Restored is the description by which an operator restores a set with redlock members restore, by what the nodes keep that
// answer, by address: of a set that was changed, and of which no majority of the members keeps the last description, all
// members by the last one that is left make a new set, to which the caller gives a name. The last one is that of the given
// nodes, or a later one that its members keep. It is nil if there is nothing to restore, as a set that was never changed heals
// by itself, or if a member does not answer: then answer is false. lost are the members that keep nothing, if they are most
// members.
func Restored(kept map[string]wire.Kept, given []string) (set *wire.Description, lost []string, answer bool) {
	var last *wire.Description
	for _, addr := range given {
		if d := kept[addr].Description; d != nil && (last == nil || d.Epoch > last.Epoch) {
			last = d
		}
	}
	if last == nil {
		return nil, nil, true
	}
	for i := 0; i < len(last.Members); i++ {
		if d := kept[last.Members[i]].Description; d != nil && d.Set == last.Set && d.Epoch > last.Epoch {
			last, i = d, -1 // and its members may keep a later one
		}
	}
	keep := 0
	for _, member := range last.Members {
		told, answers := kept[member]
		switch {
		case !answers:
			return nil, nil, false
		case told.Description == nil:
			lost = append(lost, member)
			if last.Epoch == 1 {
				keep++
			}
		case told.Set == last.Set && told.Epoch == last.Epoch:
			keep++
		}
	}
	if 2*keep > len(last.Members) {
		return nil, nil, true
	}
	if 2*len(lost) <= len(last.Members) {
		lost = nil
	}
	set = last.Copy()
	set.Epoch, set.Past, set.Former = last.Epoch+1, nil, nil
	return set, lost, true
}
