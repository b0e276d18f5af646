package recipes

import "sync"

// A Guard admits the holders of one lock, and none after a later one. Its resource must be
// accessed only through the Guard, and must end with it: a Guard loses its number when its
// process ends.
type Guard struct {
	mu      sync.Mutex
	largest int64
}

// Do calls f, to read or to write, unless a later holder has been here. No other
// holder comes between the check of the number and f, so f should not block.
func (g *Guard) Do(fence int64, f func() error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if fence < g.largest {
		return ErrStale
	}
	g.largest = fence
	return f()
}
