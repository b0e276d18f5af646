// Package coverage counts which situations the schedules of the model arena reach: pairs such as a step under way and a
// fault that begins. It reads histories, watches model nodes, and has hooks; it changes nothing of what happens.
package coverage

import (
	"sync"

	"github.com/quorumlock/redlock/chaos/history"
)

// A Sheet has the situations that one schedule has reached.
type Sheet struct {
	makes   []Situation // of the table faults: the scenario has both the fault and the step
	watches []*watch    // of the nodes

	mu      sync.Mutex // protects what follows: the Lockers of several clients call hooks at once
	reached map[Situation]bool
}

// NewSheet returns an empty sheet, for a schedule of a scenario that has these faults, and clients that do these steps.
func NewSheet(kinds []history.FaultKind, steps []string) *Sheet {
	s := &Sheet{reached: make(map[Situation]bool)}
	for _, kind := range kinds {
		for _, step := range steps {
			s.makes = append(s.makes, Situation{faults.Name, string(kind), step})
		}
	}
	return s
}

// mark notes a situation of a table. What the table does not have is not counted.
func (s *Sheet) mark(t *Table, row, column string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reached[Situation{t.Name, row, column}] = true
}

// Counts has, for each situation, how many schedules have reached it. The zero value has counted none.
type Counts struct {
	mu        sync.Mutex // protects what follows
	schedules int
	reached   map[Situation]int
	made      map[Situation]bool // of the table faults: a scenario that ran has both
}

// Add counts a schedule that is over.
func (c *Counts) Add(s *Sheet) {
	for _, w := range s.watches {
		w.into(s)
	}
	for idea, by := range shownBy {
		if s.reached[by] {
			s.mark(ideas, idea, exercised)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reached == nil {
		c.reached, c.made = make(map[Situation]int), make(map[Situation]bool)
	}
	c.schedules++
	for is := range s.reached {
		c.reached[is]++
	}
	for _, is := range s.makes {
		c.made[is] = true
	}
}

// Schedules returns the number of schedules that were counted.
func (c *Counts) Schedules() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.schedules
}

// Of returns how many schedules have reached a situation.
func (c *Counts) Of(s Situation) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reached[s]
}

// unmade reports whether no scenario that ran has both the fault and the step of a situation. Caller holds c.mu.
func (c *Counts) unmade(s Situation) bool { return s.Table == faults.Name && !c.made[s] }
