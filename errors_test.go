package redlock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-multierror"
)

// TestQuorumErrorText: one line that says what, why and which node, for each reaction of a
// caller (E1, E2, E3).
func TestQuorumErrorText(t *testing.T) {
	q := func(op string, kind, cause error, nodes ...*NodeError) *QuorumError {
		e := &QuorumError{Op: op, Name: "jobs", N: 3, Need: 2, Kind: kind, Cause: cause}
		for _, n := range nodes {
			e.note(n)
		}
		return e
	}
	for _, tt := range []struct {
		err  error
		want string
	}{
		{q("acquire", ErrHeld, nil,
			&NodeError{Node: "a:1", Outcome: OutcomeHeld, Holder: "t0", TTL: 3 * time.Second},
			&NodeError{Node: "b:1", Outcome: OutcomeTimeout, Elapsed: 500*time.Millisecond + 1234}),
			`redlock: acquire "jobs": held by another: 0 votes, 2 of 3 needed (a:1: held by t0 for 3s; b:1: timeout after 500ms)`},
		{q("acquire", ErrNoQuorum, context.DeadlineExceeded,
			&NodeError{Node: "a:1", Outcome: OutcomeUnreachable, Err: errors.New("dial tcp: connection refused")},
			&NodeError{Node: "b:1", Outcome: OutcomeTimeout, Elapsed: time.Second, Err: errors.New("silent for 2s")}),
			`redlock: acquire "jobs": no quorum: 0 votes, 2 of 3 needed, context deadline exceeded (a:1: unreachable: dial tcp: connection refused; b:1: timeout: silent for 2s)`},
		{&NodeError{Node: "10.0.0.1:6379", Outcome: OutcomeUnreachable, Err: &net.OpError{
			Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 6379},
			Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}},
			"10.0.0.1:6379: unreachable: dial: connect: connection refused"},
		{q("extend", ErrLost, nil, &NodeError{Node: "a:1", Outcome: OutcomeGone}),
			`redlock: extend "jobs": lock lost: the nodes do not have it any more: 0 votes, 2 of 3 needed (a:1: gone)`},
		{q("release", ErrNoQuorum, nil), `redlock: release "jobs": no quorum: 0 votes, 2 of 3 needed`},
		{errExpired, "redlock: lock lost: validity ended"},
		{errShut, "redlock: closed: lock lost"},
		{errors.New(Outcome(200).String()), "Status(200)"},
	} {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}

// TestQuorumErrorUnwraps: what a caller may ask of it.
func TestQuorumErrorUnwraps(t *testing.T) {
	e := &QuorumError{Kind: ErrHeld, Cause: context.Canceled}
	e.note(&NodeError{Node: "a:1", Outcome: OutcomeUnreachable, Err: io.EOF})
	e.note(&NodeError{Node: "b:1", Outcome: OutcomeHeld})
	var err error = fmt.Errorf("job 7: %w", e)
	for _, target := range []error{ErrHeld, context.Canceled, io.EOF} {
		if !errors.Is(err, target) {
			t.Errorf("is not %v", target)
		}
	}
	if errors.Is(err, ErrNoQuorum) || errors.Is(err, ErrLost) {
		t.Error("is more than one sentinel")
	}
	var node *NodeError
	if !errors.As(err, &node) || node.Node != "a:1" {
		t.Errorf("as NodeError: %v", node)
	}
	var list *multierror.Error
	if !errors.As(err, &list) || len(list.Errors) != 2 {
		t.Errorf("as *multierror.Error: %v", list)
	}
	if bare := (&QuorumError{Kind: ErrLost}).Unwrap(); len(bare) != 1 {
		t.Errorf("without nodes it unwraps to %v", bare)
	}
}

func TestEnded(t *testing.T) {
	errShutdown := errors.New("shutting down")
	ctx, cancel := context.WithCancelCause(t.Context())
	if err := ended(ctx); err != nil {
		t.Error(err)
	}
	cancel(errShutdown)
	if err := ended(ctx); !errors.Is(err, context.Canceled) || !errors.Is(err, errShutdown) {
		t.Error(err)
	}
	plain, stop := context.WithCancel(t.Context())
	stop()
	if err := ended(plain); err != context.Canceled {
		t.Error(err)
	}
}
