package client

import (
	"context"
	"errors"
	"strings"

	"github.com/quorumlock/redlock"
)

// why gives the word for an error.
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
	case Refuses(err):
		return "refused"
	case strings.Contains(err.Error(), "released"):
		return "released"
	case strings.Contains(err.Error(), "detached"):
		return "detached"
	}
	return "other"
}

// Refuses reports whether an error says that the set has other settings than the program.
func Refuses(err error) bool {
	return strings.Contains(err.Error(), "all its programs must have the same") || strings.Contains(err.Error(), ", and the set allows ")
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
