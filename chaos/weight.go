package chaos

// A Weight is what there is in memory at one place: on a node, or, in the history with a
// client's number, in a Locker's lane to it.
type Weight struct {
	Node     int `json:"node"`               // from 0
	Keys     int `json:"keys,omitempty"`     // of the node's, also those that stay when all locks are gone
	Bytes    int `json:"bytes,omitempty"`    // that they take
	Requests int `json:"requests,omitempty"` // that the lane keeps
}

// weighs reports whether anybody wants to know.
func (h *Head) weighs() bool { return h.MostKeys > 0 || h.MostBytes > 0 || h.MostRequests > 0 }

// weighNodes notes what is on the nodes.
func (d *driver) weighNodes() {
	if !d.plan.Run.weighs() {
		return
	}
	for _, w := range d.nodes.weigh() {
		d.rec.note(Event{Kind: Weighed, Weight: &w})
	}
}

// weighClients notes what the clients that are there keep for the nodes.
func (d *driver) weighClients() {
	if d.plan.Run.MostRequests <= 0 {
		return
	}
	d.mu.Lock()
	all := make([]member, 0, len(d.clients))
	for _, c := range d.clients {
		if c != nil {
			all = append(all, c)
		}
	}
	d.mu.Unlock()
	for _, c := range all {
		c.weigh()
	}
}

func (c *client) weigh() {
	for i, n := range c.process.lanes() {
		c.note(Event{Kind: Weighed, Weight: &Weight{Node: i, Requests: n}})
	}
}

// find notes on how many nodes the token is that the client has just got.
func (h *hold) find() {
	c := h.client
	if !c.plan.Run.Found {
		return
	}
	has, silent := c.process.holders(h.want.Name, h.lock.Token())
	c.note(Event{Kind: Found, Op: h.op, Name: h.want.Name, Value: has, Was: silent})
}
