package fence

import (
	"fmt"
	"sync"
)

// A Guard protects one resource in the memory of this process. Access the resource only through the Guard, and
// let both end together: a Guard forgets its number when the process ends, so it cannot protect what outlives
// the process, such as a file. The zero value is ready, and must not be copied after its first use. All methods
// may be called from several goroutines at once.
type Guard struct {
	mu      sync.Mutex
	largest int64
}

// Do stores fence and calls f, which reads or writes the resource, and returns its error. If a larger fence was
// stored before, it returns [ErrStale] and does not call f.
//
// Other calls of Do wait while f runs, and nothing else bounds that wait: f should do no more than access the
// resource. It must not call Do of the same Guard. The fence stays stored if f fails, or panics.
func (g *Guard) Do(fence int64, f func() error) error {
	if err := check(fence); err != nil {
		return err
	}
	return g.do("", fence, f)
}

func (g *Guard) do(name string, fence int64, f func() error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if fence < g.largest {
		return stale(name, fence)
	}
	g.largest = fence
	return f()
}

// DefaultMax is how many names Guards have if Guards.Max is 0.
const DefaultMax = 1 << 16

// Guards have a [Guard] for each resource, by name. The zero value is ready, and must not be copied after its
// first use. All methods may be called from several goroutines at once.
type Guards struct {
	// Max is how many names there may be; 0: DefaultMax. A name that was accepted once is kept as long as the
	// Guards: without its number every earlier holder would be accepted again. A name takes about 100 bytes and
	// its own length, which is 1,024 bytes at most.
	Max int

	mu    sync.Mutex // of named, and not of what f does
	named map[string]*Guard
}

// Do is Guard.Do for the resource with this name. Calls with different names do not wait for each other. If the name is
// a new one, and there are Guards.Max names already, it returns an error that says so, and does not call f.
func (g *Guards) Do(name string, fence int64, f func() error) error {
	if err := checkNamed("name", name, fence); err != nil {
		return err
	}
	guard, err := g.get(name)
	if err != nil {
		return err
	}
	return guard.do(name, fence, f)
}

func (g *Guards) get(name string) (*Guard, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if guard := g.named[name]; guard != nil {
		return guard, nil
	}
	limit := g.Max
	if limit == 0 {
		limit = DefaultMax
	}
	if len(g.named) >= limit {
		return nil, fullError(limit)
	}
	if g.named == nil {
		g.named = make(map[string]*Guard)
	}
	guard := new(Guard)
	g.named[name] = guard
	return guard, nil
}

// A fullError is how many names there are, and may be.
type fullError int

func (e fullError) Error() string {
	return fmt.Sprintf("fence: there are %d names already, and Guards.Max allows no more", int(e))
}
