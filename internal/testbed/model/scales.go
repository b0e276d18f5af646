package model

import "github.com/quorumlock/redlock/internal/script"

// weigh stores a function for Lanes: it returns the number of requests in each lane (queue to a node) of the process's
// Locker. If the process makes several Lockers, one after the other, the last one counts.
func (h *Host) weigh(lanes func() []int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lanes = lanes
}

// Lanes returns how many requests are queued for each node by the process's Locker; nil: there is no Locker.
func (h *Host) Lanes() []int {
	h.mu.Lock()
	lanes := h.lanes
	h.mu.Unlock()
	if lanes == nil {
		return nil
	}
	return lanes()
}

// Size returns the number of keys that a Redis in the place of this node would have, and about how many bytes they
// would take. It includes keys that stay when all locks are gone.
func (n *Node) Size() (keys, bytes int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	const (
		perKey = 72 // for each key, beside its name and content
		perOne = 24 // for each member of a set

		perBucket = 110 // of the table of fences
	)
	add := func(name string) { keys, bytes = keys+1, bytes+perKey+len(name) }
	for _, key := range n.list() {
		e := n.keys[key]
		add(key)
		bytes += len(e.token)
		for token := range e.set {
			bytes += perOne + len(token)
		}
	}
	if len(n.counts) > 0 {
		add(script.Fences)
		bytes += perBucket * len(n.counts)
	}
	for key, q := range n.queues {
		if len(q.Queue) > 0 && n.now() <= q.expires {
			add(key + script.QueueSuffix)
			for _, e := range q.Queue {
				bytes += perOne + len(e.String())
			}
		}
	}
	if n.marker != "" {
		add(script.Marker)
		bytes += len(n.marker)
	}
	if n.kept.Description != nil {
		add(script.Told)
		bytes += len(n.kept.String())
	}
	if n.choice.epoch > 0 || n.choice.comes != "" {
		add(script.Choice)
		bytes += len(n.choice.promised) + len(n.choice.taken) + len(n.choice.value) + len(n.choice.comes)
	}
	return keys, bytes
}
