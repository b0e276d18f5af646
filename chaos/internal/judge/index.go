package judge

import "github.com/quorumlock/redlock/chaos/history"

// An index finds a record's ops by client and number. It is a hash table with
// open addressing; with a map the judge takes a quarter longer.
type index []int32 // of an op, plus 1; 0: free

// newIndex is large enough for so many ops, and never more than half full.
func newIndex(ops int) index {
	size := 16
	for size < 2*ops {
		size *= 2
	}
	return make(index, size)
}

// slot is the place of an op in the index, or the free place for it.
func (r *record) slot(client, number int) int {
	hash := (uint64(client)*0x9e3779b97f4a7c15 + uint64(number)) * 0xff51afd7ed558ccd
	mask := len(r.index) - 1
	for at := int(hash>>33) & mask; ; at = (at + 1) & mask {
		k := r.index[at]
		if k == 0 || r.ops[k-1].client == client && r.ops[k-1].number == number {
			return at
		}
	}
}

// find gives the op of an event, or -1.
func (r *record) find(e *history.Event) int { return int(r.index[r.slot(e.Client, e.Op)]) - 1 }
