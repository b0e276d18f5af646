package chaos

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/quorumlock/redlock"
)

// why puts an error into a word.
func why(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, redlock.ErrClosed):
		return "closed"
	case errors.Is(err, redlock.ErrLost) && strings.Contains(err.Error(), "MaxHold"):
		return "max hold"
	case errors.Is(err, redlock.ErrLost):
		return "lost"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, redlock.ErrHeld) && !errors.Is(err, redlock.ErrNoQuorum):
		return "cancelled"
	case errors.Is(err, redlock.ErrHeld):
		return "held"
	case errors.Is(err, redlock.ErrNoQuorum):
		return "no quorum"
	case strings.Contains(err.Error(), "released"):
		return "released"
	case strings.Contains(err.Error(), "detached"):
		return "detached"
	}
	return "other"
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// left remembers the tokens that nobody will release: those that were forgotten,
// and those of processes that died.
type left struct {
	mu     sync.Mutex
	tokens map[string]bool
	dead   []string // beginnings of tokens
}

func (l *left) add(token string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tokens[token] = true
}

func (l *left) died(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = append(l.dead, name+".")
}

func (l *left) has(token string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, beginning := range l.dead {
		if strings.HasPrefix(token, beginning) {
			return true
		}
	}
	return l.tokens[token]
}
