package recipes

import "sync"

// A Guard lets the holders of one lock in, and none after a later one. What it guards
// must be reached through it alone, and end with it: a Guard forgets when its process
// ends.
type Guard struct {
	mu      sync.Mutex
	largest int64
}

// Do calls f, to read or to write, unless a later holder has been here. Nobody comes
// between the look at the number and f, so f should wait for nobody.
func (g *Guard) Do(fence int64, f func() error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if fence < g.largest {
		return ErrStale
	}
	g.largest = fence
	return f()
}
