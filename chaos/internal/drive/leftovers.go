package drive

import (
	"strings"
	"sync"
)

// Leftovers remembers the tokens that no client will release: those that were forgotten,
// and those of processes that died.
type Leftovers struct {
	mu     sync.Mutex
	tokens map[string]bool
	dead   []string // beginnings of tokens
}

// Add takes one token.
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
	for _, beginning := range l.dead {
		if strings.HasPrefix(token, beginning) {
			return true
		}
	}
	return l.tokens[token]
}
