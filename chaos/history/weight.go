package history

// A Weight is what there is in memory at one place: on a node, or, in the history with a
// client's number, in a Locker's lane to it.
type Weight struct {
	Node     int `json:"node"`               // from 0
	Keys     int `json:"keys,omitempty"`     // of the node's, also those that stay when all locks are gone
	Bytes    int `json:"bytes,omitempty"`    // that they take
	Requests int `json:"requests,omitempty"` // that the lane keeps
}
