package redlock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-multierror"
	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/waitlist"
	"github.com/quorumlock/redlock/internal/wire"
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

// TestRetryAfter: it is when a quorum could grant, and not when one node could, or all.
func TestRetryAfter(t *testing.T) {
	held := func(d time.Duration) *NodeError { return &NodeError{Outcome: OutcomeHeld, TTL: d} }
	other := func(o Outcome, d time.Duration) *NodeError { return &NodeError{Outcome: o, TTL: d} }
	const s = time.Second
	for _, tt := range []struct {
		what    string
		n, need int
		kind    error
		nodes   []*NodeError
		want    time.Duration
	}{
		{"all hold it", 5, 3, ErrHeld, []*NodeError{held(5 * s), held(1 * s), held(9 * s), held(2 * s), held(7 * s)}, 5 * s},
		{"two grant it", 5, 3, ErrHeld, []*NodeError{held(5 * s), held(4 * s), held(9 * s)}, 4 * s},
		{"the rest was not asked", 5, 3, ErrHeld, []*NodeError{held(5 * s), held(4 * s), held(9 * s), held(6 * s)}, 5 * s},
		{"one is down", 3, 2, ErrHeld, []*NodeError{held(5 * s), held(4 * s), other(OutcomeUnreachable, 0)}, 5 * s},
		{"a waiter comes first", 3, 2, ErrHeld, []*NodeError{other(OutcomeReserved, 2*s), other(OutcomeReserved, 3*s), other(OutcomeReserved, s)}, 2 * s},
		{"nobody has a quorum, and one node is free", 3, 2, ErrHeld, []*NodeError{held(5 * s), held(4 * s)}, 4 * s},
		{"quarantines", 3, 2, ErrNoQuorum, []*NodeError{other(OutcomeQuarantined, 8*s), other(OutcomeQuarantined, 6*s), other(OutcomeTimeout, 0)}, 8 * s},
		{"too few answer", 3, 2, ErrNoQuorum, []*NodeError{other(OutcomeUnreachable, 0), other(OutcomeTimeout, 0)}, retryUnknown},
		{"a key of another type", 3, 2, ErrNoQuorum, []*NodeError{other(OutcomeNotALock, 0), other(OutcomeNotALock, 0)}, retryUnknown},
		{"late requests", 3, 2, ErrNoQuorum, []*NodeError{other(OutcomeLate, 0), other(OutcomeLate, 0)}, 0},
		{"lost", 3, 2, ErrLost, []*NodeError{other(OutcomeGone, 0), other(OutcomeGone, 0)}, 0},
	} {
		e := &QuorumError{N: tt.n, Need: tt.need, Kind: tt.kind}
		for _, n := range tt.nodes {
			e.note(n)
		}
		if got := e.RetryAfter(); got != tt.want {
			t.Errorf("%s: after %v, want %v", tt.what, got, tt.want)
		}
	}
}

// TestLossUnwraps: a lock whose validity has ended after failed renewals is lost, and is not also without
// a quorum; the answers of the last renewal are there, by node.
func TestLossUnwraps(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(3)
		lk := ms.locker(t, nil)
		l := acquired(t, lk, "a", AutoRenew())
		ctx := l.Context(t.Context())
		ms[0].kill()
		ms[1].kill()
		<-ctx.Done()
		err := context.Cause(ctx)
		if !errors.Is(err, ErrLost) || !errors.Is(err, errExpired) || errors.Is(err, ErrNoQuorum) || errors.Is(err, ErrHeld) {
			t.Errorf("got %v", err)
		}
		q := wantQuorumError(t, err, ErrLost)
		if nodes := q.Nodes(); len(nodes) != 2 || nodes[0].Node != "node0" || nodes[1].Outcome != OutcomeUnreachable {
			t.Errorf("the nodes are %v", nodes)
		}
		if again := l.Extend(t.Context()); again != err {
			t.Errorf("Extend gives %v", again)
		}
	})
}

// FuzzReply: what a server says to a step is one of the replies that the headers of the
// scripts name, and is taken for that, or it is Failed. And whatever it says, the wait for
// the next attempt is neither none nor longer than a heartbeat.
//
// The form has a letter for each element of a reply: a number, a string, a list of
// strings, or nil. One that begins with = is no list, but its first element alone.
func FuzzReply(f *testing.F) {
	for i, form := range []string{"=n", "n", "sn", "nn", "nsn", "nsnn", "nsnnn", "ns", "snssnll", "", "=0", "0n", "lss"} {
		for step := range byte(wire.Inspect) + 1 {
			f.Add(step, form, int64(i)-1, int64(1.8e15), "p.1 1800000000100 x me|1.7e15|c|1800000000200")
		}
	}
	f.Add(byte(wire.Acquire), "nsn", int64(1e13), int64(1.8e15), "a key that stays for longer than durations last")
	f.Add(byte(wire.Acquire), "nsnn", int64(-1), int64(1.8e15), "p.1")
	f.Add(byte(wire.Inspect), "snssnll", int64(0), int64(0), "a|9999999999999|b|NaN|c|-Inf||")

	f.Fuzz(func(t *testing.T, step byte, form string, first, other int64, words string) {
		s := wire.Op(step) % (wire.Inspect + 1)
		form, bare := strings.CutPrefix(form, "=")
		v := make([]any, 0, len(form))
		said := strings.Split(words, "|")
		for i := range len(form) {
			var element any
			switch form[i] {
			case 'n':
				element = other
				if !strings.Contains(form[:i], "n") {
					element = first
				}
			case 's':
				element = said[i%len(said)]
			case 'l':
				list := make([]any, len(said))
				for i := range said {
					list[i] = said[i]
				}
				element = list
			}
			v = append(v, element)
		}
		var value any = v
		if bare && len(v) > 0 {
			form = "=" + form[:1]
			value = v[0]
		}

		r := wire.Parse(s, value, nil)
		if want := meant(s, form, first); r.Status != want {
			t.Fatalf("%v: %v is taken for %v, not %v", s, value, r.Status, want)
		}
		if (r.Err == nil) != (r.Status == wire.Granted || r.Status == wire.Held || r.Status == wire.Reserved || r.Status == wire.Expired || r.Status == wire.Stolen) {
			t.Errorf("%v: %v is %v, and the error %v", s, value, r.Status, r.Err)
		}
		if r.Fence != wire.AsProposed && (r.Fence < 0 || r.Fence >= wire.MaxFence) && s == wire.Acquire && r.Status == wire.Granted {
			t.Errorf("%v: the fence is %d", value, r.Fence)
		}
		if o := r.Status; (o == wire.Held || o == wire.Reserved || o == wire.Stolen) && (r.TTL < 0 || r.TTL < time.Duration(min(first, 1e9))*time.Millisecond) {
			t.Errorf("%v: %d ms are %v", value, first, r.TTL)
		}
		for _, h := range r.Holders {
			if h.TTL < 0 || h.Mode == 0 {
				t.Errorf("%v: holder %+v", value, h)
			}
		}

		e := &QuorumError{Op: s.String(), N: 1, Need: 1, Kind: ErrHeld}
		e.note(&NodeError{Outcome: Outcome(r.Status), Holder: r.Holder, TTL: r.TTL, Err: r.Err, slot: r.Slot})
		refusal := e.refusal()
		if d := refusal.RetryIn(0, time.Second, sim.Chance{}); d < time.Millisecond || d > waitlist.Heartbeat(time.Second) {
			t.Errorf("%v: the next attempt is in %v", value, d)
		}
		_ = e.Error()
	})
}

// meant is what the headers of the scripts say that a reply of this form means.
func meant(s wire.Op, form string, first int64) wire.Status {
	held := wire.Held
	switch {
	case s == wire.Acquire && form == "=n":
		return wire.Granted
	case form == "=n" && first == 0:
		return wire.Expired
	case form == "=n":
		return wire.Granted
	case s == wire.Inspect && form == "snssnll":
		return wire.Granted
	case s == wire.Acquire && form == "ns":
		return wire.Late
	case s == wire.Acquire && form == "sn":
		return wire.Quarantined
	case s == wire.Acquire && form == "nn" && first >= 0 && first < wire.MaxFence:
		return wire.Granted
	case s == wire.Acquire && len(form) == 4 && form[:3] == "nsn": // the fourth is there to be the fourth
		return wire.Reserved
	case s == wire.Acquire && (form == "nsn" || len(form) == 5 && form[:3] == "nsn" && form[4] == 'n'):
	case s != wire.Acquire && form == "ns":
		held = wire.Stolen
	default:
		return wire.Failed
	}
	if first < 0 {
		return wire.Foreign
	}
	return held
}
