package redlock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
)

// TestNodeDeadlines: an error is that of a context only if the caller's has ended.
func TestNodeDeadlines(t *testing.T) {
	for _, err := range []error{context.DeadlineExceeded, fmt.Errorf("reading: %w", context.Canceled), &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}} {
		e := &QuorumError{Kind: ErrNoQuorum}
		e.note(&NodeError{Node: "a", Outcome: OutcomeTimeout, Err: err})
		if errors.Is(e, context.DeadlineExceeded) || errors.Is(e, context.Canceled) {
			t.Errorf("%v is a context's error", e)
		}
		if e.Cause = context.Canceled; !errors.Is(e, context.Canceled) || errors.Is(e, context.DeadlineExceeded) {
			t.Errorf("%v is not the caller's own", e)
		}
		if why := (*NodeError)(nil); !errors.As(e, &why) || why.Err != err {
			t.Errorf("%v does not have the node's error", e)
		}
	}
	e := &QuorumError{Kind: ErrNoQuorum}
	if e.note(&NodeError{Node: "a", Err: io.EOF}); !errors.Is(e, io.EOF) {
		t.Errorf("%v hides the node's error", e)
	}
}
