package load

import (
	"fmt"
	"math"
	"math/bits"
	"sync"
	"time"

	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
)

// fine is how many cells a Histogram has for the durations from one power of two to the next, so
// that its quantiles are off by less than 1 %.
const fine = 64

// A Histogram counts durations in cells that grow with them: its size is the same after a second as after a night. All
// callers share it: its mutex costs nothing beside a round trip.
type Histogram struct {
	mu      sync.Mutex
	cells   [fine * 58]uint64 // as many as the longest Duration needs, which has 63 bits
	count   uint64
	sum     float64
	longest time.Duration
}

func (h *Histogram) Add(d time.Duration) {
	d = max(d, 0)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cells[cell(d)]++
	h.count++
	h.sum += float64(d)
	h.longest = max(h.longest, d)
}

// Reach takes a duration that had not ended yet: it counts for the longest one, and for nothing else.
func (h *Histogram) Reach(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.longest = max(h.longest, d)
}

// cell returns the index of a duration's cell: below fine each duration has a cell of its own, and above it each power
// of two has fine cells.
func cell(d time.Duration) int {
	shift := max(0, bits.Len64(uint64(d))-bits.Len(fine))
	return shift*fine + int(d>>shift)
}

// middle returns the duration in the middle of a cell, which stands for all that are counted there.
func middle(cell int) time.Duration {
	shift := max(0, cell/fine-1)
	least := time.Duration(cell-shift*fine) << shift
	return least + time.Duration(1)<<shift/2
}

// quantile returns the duration that this share (0 to 1) of all durations does not exceed; 0: there are none.
func (h *Histogram) quantile(share float64) time.Duration {
	rank := uint64(math.Ceil(share * float64(h.count)))
	for i, n := range h.cells {
		if rank <= n && n > 0 {
			return min(middle(i), h.longest)
		}
		rank -= n
	}
	return 0
}

// Spread returns a summary of the durations: quantiles, mean and the longest.
func (h *Histogram) Spread() Spread {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := Spread{Count: h.count, P50: Millis(h.quantile(0.50)), P99: Millis(h.quantile(0.99)), Longest: Millis(h.longest)}
	if h.count > 0 {
		s.Mean = Millis(h.sum / float64(h.count))
	}
	return s
}

// A Spread is a summary of many durations.
type Spread struct {
	Count   uint64 `json:"count"`
	P50     Millis `json:"p50_ms"`
	P99     Millis `json:"p99_ms"`
	Longest Millis `json:"longest_ms"`
	Mean    Millis `json:"mean_ms"`
}

// Cells returns p50, p99 and the longest as cells of a table; "-" if there are no durations.
func (s Spread) Cells() []string {
	if s.Count == 0 {
		return []string{"-", "-", "-"}
	}
	return []string{s.P50.String(), s.P99.String(), s.Longest.String()}
}

// Millis is a duration that is printed in milliseconds, as text and as JSON: the figures of a
// column are compared, so they have one unit.
type Millis time.Duration

func (m Millis) Float() float64 { return time.Duration(m).Seconds() * 1000 }

func (m Millis) String() string {
	ms := m.Float()
	switch {
	case ms < 10:
		return fmt.Sprintf("%.2fms", ms)
	case ms < 100:
		return fmt.Sprintf("%.1fms", ms)
	}
	return phrase.Digits(int(math.Round(ms))) + "ms"
}

func (m Millis) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "%.3f", m.Float()), nil }
