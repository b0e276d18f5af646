package vote

import (
	"slices"
	"testing"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/wire"
)

// TestVotesByDescription: what a node grants is a vote if the node keeps the description by which the client
// counts; and an extension if the node had it when it had carried that out, too.
func TestVotesByDescription(t *testing.T) {
	of := func(set string, epoch int64) *wire.Description {
		return &wire.Description{MaxTTL: 10_000, Epoch: epoch, Set: set, Members: []string{"a:1", "b:1", "c:1"}}
	}
	marker := func(epoch int64) string {
		return wire.Marker{RunID: "me", Born: 1, Writer: 1, Epoch: epoch}.String()
	}
	told := func(d *wire.Description) wire.Kept { return wire.Kept{Self: "a:1", Description: d} }
	steps := []wire.Op{wire.Acquire, wire.Raise, wire.Extend}
	for _, tt := range []struct {
		name  string
		keeps wire.Kept
		by    *wire.Description
		shown string
		want  []wire.Op // which are votes
	}{
		{"the same", told(of("s", 1)), of("s", 1), marker(1), steps},
		{"the same, of a later epoch", told(of("s", 5)), of("s", 5), marker(5), steps},
		{"the node keeps none", wire.Kept{}, of("s", 1), marker(1), nil},
		{"the node keeps an earlier one", told(of("s", 1)), of("s", 2), marker(1), nil},
		{"the node keeps a later one", told(of("s", 3)), of("s", 2), marker(3), nil},
		{"the node keeps another set's", told(of("t", 1)), of("s", 1), marker(1), nil},
		{"the client knows none", told(of("s", 1)), nil, marker(1), nil},
		{"none is kept, and none known", wire.Kept{}, nil, marker(0), nil},

		{"it had gone to a later one", told(of("s", 1)), of("s", 1), marker(2), steps[:2]},
		{"it had gone from the second to the third", told(of("s", 2)), of("s", 2), marker(3), steps[:2]},
		{"it had gone back to the first, as one that has lost its data", told(of("s", 2)), of("s", 2), marker(1), steps[:2]},
		{"it had lost its data", told(of("s", 1)), of("s", 1), "", steps[:2]},
		{"it had something else for a marker", told(of("s", 1)), of("s", 1), "no marker", steps[:2]},
		{"the marker was written anew", told(of("s", 2)), of("s", 2), wire.Marker{RunID: "you", Born: 9, Epoch: 2}.String(), steps},
	} {
		cfg := testConfig()
		cfg.Described = true
		m := testNode(&cfg)
		m.Keep(tt.keeps, wire.Marker{})
		for _, step := range append(slices.Clone(steps), wire.Release, wire.Inspect) {
			q := &lane.Request{Op: step, Claim: &lane.Claim{}, By: tt.by}
			m.answers(q, wire.Reply{Status: wire.Granted}, tt.shown)
			want := !slices.Contains(steps, step) || slices.Contains(tt.want, step)
			if step == wire.Inspect {
				want = tt.by == nil || slices.Contains(tt.want, wire.Acquire)
			}
			if got := q.Reply.Status == wire.Granted; got != want {
				t.Errorf("%s: %v is a vote: %v, want %v: %v", tt.name, step, got, want, q.Reply.Err)
			}
		}
		// A refusal says what it says, whatever the node keeps: it gives no lock away.
		q := &lane.Request{Op: wire.Extend, Claim: &lane.Claim{}, By: tt.by}
		if m.answers(q, wire.Reply{Status: wire.Expired}, tt.shown); q.Reply.Status != wire.Expired {
			t.Errorf("%s: %v", tt.name, q.Reply.Status)
		}
		// Nor does the description matter to a client that has turned the quarantine off.
		cfg.Described = false
		q = &lane.Request{Op: wire.Extend, Claim: &lane.Claim{}}
		if m.answers(q, wire.Reply{Status: wire.Granted}, ""); q.Reply.Status != wire.Granted {
			t.Errorf("%s, without a description: %v", tt.name, q.Reply.Status)
		}
	}
}

// TestKeepsWhatWasSaidLast: a node keeps what it has said last, and is the member that it has ever said it is.
func TestKeepsWhatWasSaidLast(t *testing.T) {
	cfg := testConfig()
	m := testNode(&cfg)
	mark := func(born int64) wire.Marker { return wire.Marker{RunID: "me", Born: born} }
	told := func(epoch int64) wire.Kept {
		return wire.Kept{Self: "a:1", Description: &wire.Description{MaxTTL: 10_000, Epoch: epoch, Set: "s", Members: []string{"a:1"}}}
	}
	for _, tt := range []struct {
		told wire.Kept
		born int64
		want int64 // the epoch
	}{
		{wire.Kept{}, 1, 0}, {told(1), 1, 1}, {told(3), 1, 3}, {wire.Kept{}, 1, 0}, {told(2), 1, 2},
		{wire.Kept{}, 2, 0}, {told(1), 2, 1}, // it has lost its data
	} {
		m.known, m.met = mark(tt.born), true
		if tt.want == 0 { // the marker that is known is still the one before
			m.known = mark(tt.born - 1)
		}
		m.Keep(tt.told, mark(tt.born))
		if got := m.Kept().At(); got != tt.want || m.Member("s") != "a:1" && got > 0 {
			t.Errorf("epoch %d, born at %d: it keeps %d, want %d", tt.told.At(), tt.born, got, tt.want)
		}
	}
	if m.Member("s") != "a:1" || m.Member("t") != "" {
		t.Errorf("it was member %q", m.Member("s"))
	}
}
