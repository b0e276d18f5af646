package history

// A Weight is the amount of memory in use at one place: on a node, or, in an event with a Client,
// in the Locker's lane to that node.
type Weight struct {
	Node     int `json:"node"`               // from 0
	Keys     int `json:"keys,omitempty"`     // of the node, including those that stay when all locks are gone
	Bytes    int `json:"bytes,omitempty"`    // the memory that they take
	Requests int `json:"requests,omitempty"` // that the lane keeps
}
