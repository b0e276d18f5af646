package drive

import (
	"strings"
	"sync"
)

// Leftovers has the tokens that no client will release: those of locks that were not released, and
// those of processes that died.
type Leftovers struct {
	mu     sync.Mutex
	tokens map[string]bool
	dead   []string // prefixes of the dead processes' tokens
}

// Add adds one token; or, with a dot behind it, that of an attempt, whatever its identity is.
func (l *Leftovers) Add(token string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tokens[token] = true
}

func (l *Leftovers) died(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = append(l.dead, name+".")
}

func (l *Leftovers) has(token string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, contender, _ := strings.Cut(token, "-") // behind the ticket of a try that contends
	for _, beginning := range l.dead {
		if strings.HasPrefix(token, beginning) || strings.HasPrefix(contender, beginning) {
			return true
		}
	}
	waiter := strings.SplitAfterN(token, ".", 3)
	return l.tokens[token] || len(waiter) == 3 && l.tokens[waiter[0]+waiter[1]]
}
