package drive

import "github.com/quorumlock/redlock/chaos/history"

// weighs reports whether a run records the memory in use.
func weighs(h *history.Head) bool { return h.MostKeys > 0 || h.MostBytes > 0 || h.MostRequests > 0 }

// weighNodes records the memory in use on the nodes.
func (d *Driver) weighNodes() {
	if !weighs(&d.plan.Run) {
		return
	}
	for _, w := range d.nodes.Weigh() {
		d.Recorder.Note(history.Event{Kind: history.Weighed, Weight: &w})
	}
}

// weighClients records the requests that the clients keep for the nodes.
func (d *Driver) weighClients() {
	if d.plan.Run.MostRequests <= 0 {
		return
	}
	d.mu.Lock()
	all := make([]Member, 0, len(d.clients))
	for _, c := range d.clients {
		if c != nil {
			all = append(all, c)
		}
	}
	d.mu.Unlock()
	for _, c := range all {
		c.Weigh()
	}
}
