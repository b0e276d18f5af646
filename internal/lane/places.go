package lane

import "sync/atomic"

// Places has what is known of a claim at each node: one place for each lane that has something to
// note. There is no limit to the nodes that become members while a lock is held or waited for, so a lane takes a
// place when it needs one: a free one, that of a lane that has ended, or a new one. So there are no more places than
// lanes that live at the same time, or there were nodes when the places were made.
//
// A place belongs to one lane, and a lane leads to one node as long as it lives. Only a goroutine that has the mutex
// of that lane reads or writes the place. So nothing that is known of one node ever counts for, or against, another
// one: a lane that takes over a place finds its owner by the pointer, and put overwrites what the owner noted. The
// lane before has ended (Lane.ended): none of its goroutines run, its answers have been delivered, and it looks at no
// place any more (admit).
//
// A copy of the slice has the same places.
type Places []place

type place struct {
	lane atomic.Pointer[Lane] // whose place it is; nil: nobody's yet
	at   presence
	next atomic.Pointer[place] // of the last one of the slice: those that were made later
}

// each calls f for all places until it reports true.
func (ps Places) each(f func(*place) bool) *place {
	for i := range ps {
		if f(&ps[i]) {
			return &ps[i]
		}
	}
	if len(ps) == 0 {
		return nil
	}
	for p := ps[len(ps)-1].next.Load(); p != nil; p = p.next.Load() {
		if f(p) {
			return p
		}
	}
	return nil
}

// find gives the place of a lane; nil: it has none. Under the lane's mutex.
func (ps Places) find(n *Lane) *place {
	return ps.each(func(p *place) bool { return p.lane.Load() == n })
}

// take gives the place of a lane, which may still have what another lane noted there: put overwrites it. Under the
// lane's mutex.
func (ps Places) take(n *Lane) *place {
	if p := ps.find(n); p != nil {
		return p
	}
	p := ps.each(func(p *place) bool {
		before := p.lane.Load()
		return (before == nil || before.ended.Load()) && p.lane.CompareAndSwap(before, n)
	})
	if p != nil {
		return p
	}
	p = new(place)
	p.lane.Store(n)
	for last := &ps[len(ps)-1]; !last.next.CompareAndSwap(nil, p); {
		last = last.next.Load()
	}
	return p
}

// at is whether the node may have the token. Under the mutex.
func (n *Lane) at(c *Claim) presence {
	if p := c.places.find(n); p != nil {
		return p.at
	}
	return absent
}

// put records that. Under the mutex.
func (n *Lane) put(c *Claim, at presence) {
	if n.at(c) != at {
		c.places.take(n).at = at
	}
}
