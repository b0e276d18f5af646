package lane

import (
	"fmt"
	"testing"

	"github.com/quorumlock/redlock/internal/wire"
)

var (
	errNoScript     error = redisError("NOSCRIPT No matching script. Please use EVAL.")
	errDeniedWithin error = redisError("ERR ACL failure in script: User me has no permissions to run the 'zrem' command script: 4f29, on @user_script:1.")
)

// answers are the answers that a node may give, by name.
var answers = map[string]wire.Reply{
	"yes":       {Status: wire.Granted, Fence: 1},
	"no":        {Status: wire.Expired},
	"another's": {Status: wire.Stolen, Holder: "another"},
	"held":      {Status: wire.Held, Holder: "another"},
	"reserved":  {Status: wire.Reserved, Holder: "another"},
	"no lock":   {Status: wire.Foreign, Err: wire.ErrNoTTL},
	"late":      {Status: wire.Late, Err: wire.ErrLate},
	"forgot":    {Status: wire.Quarantined, Err: wire.ErrForgot},
	"no vote":   {Status: wire.Quarantined}, // and the token is there
	"noscript":  {Status: wire.Failed, Err: errNoScript},
	"unknown":   {Status: wire.Void, Err: wire.ErrNoScripts},
	"loading":   {Status: wire.Loading, Err: errLoading},
	"denied":    {Status: wire.Denied, Err: errDenied},
	"raised":    {Status: wire.Denied, Err: errDeniedWithin},
	"full":      {Status: wire.OutOfMemory, Err: redisError("OOM command not allowed when used incarnation > 'maxmemory'. script: 4f29, on @user_script:1.")},
	"lost":      {Status: wire.Unreachable, Err: errCut},
}

// TestSentTwice: the combined answer to a step that was sent twice, since the server had dropped
// its scripts.
func TestSentTwice(t *testing.T) {
	for _, tt := range []struct {
		step              wire.Op
		first, then, want string
	}{
		// The later one is true now, and a refusal may have become a grant.
		{wire.Acquire, "noscript", "yes", "yes"},
		{wire.Acquire, "noscript", "held", "held"},
		{wire.Acquire, "held", "yes", "yes"},
		{wire.Acquire, "held", "held", "held"},
		{wire.Acquire, "reserved", "yes", "yes"},
		{wire.Acquire, "no lock", "yes", "yes"},
		{wire.Acquire, "forgot", "yes", "yes"},
		{wire.Acquire, "late", "yes", "yes"},
		{wire.Acquire, "held", "no vote", "no vote"},
		{wire.Acquire, "held", "lost", "lost"}, // it may have been granted
		{wire.Acquire, "held", "raised", "raised"},
		{wire.Acquire, "yes", "yes", "yes"},
		{wire.Acquire, "yes", "held", "held"},
		{wire.Acquire, "yes", "no vote", "no vote"},
		{wire.Acquire, "yes", "forgot", "forgot"},
		{wire.Acquire, "yes", "lost", "lost"}, // no vote, and perhaps there
		{wire.Acquire, "yes", "full", "full"}, // had it been there, it would have said so
		{wire.Acquire, "raised", "held", "held"},
		// The answer of a node that did not look does not count.
		{wire.Acquire, "yes", "late", "yes"},
		{wire.Acquire, "yes", "noscript", "yes"},
		{wire.Acquire, "yes", "loading", "yes"},
		{wire.Acquire, "yes", "denied", "yes"},
		{wire.Acquire, "held", "late", "held"},
		{wire.Acquire, "held", "noscript", "held"},
		{wire.Acquire, "raised", "late", "raised"},
		{wire.Acquire, "lost", "noscript", "lost"},
		{wire.Acquire, "noscript", "noscript", "noscript"},
		{wire.Acquire, "noscript", "denied", "denied"},

		{wire.Raise, "yes", "no", "yes"}, // it was stored in its time
		{wire.Raise, "yes", "lost", "yes"},
		{wire.Raise, "yes", "noscript", "yes"},
		{wire.Raise, "no", "yes", "yes"},
		{wire.Raise, "no", "lost", "lost"},
		{wire.Raise, "no", "noscript", "no"},
		{wire.Raise, "noscript", "no", "no"},

		{wire.Extend, "yes", "yes", "yes"},
		{wire.Extend, "yes", "no", "no"},
		{wire.Extend, "yes", "another's", "another's"},
		{wire.Extend, "yes", "lost", "lost"},
		{wire.Extend, "yes", "noscript", "yes"},
		{wire.Extend, "no", "yes", "yes"},
		{wire.Extend, "another's", "yes", "yes"},
		{wire.Extend, "noscript", "yes", "yes"},

		{wire.Release, "yes", "no", "yes"}, // the first one had deleted it
		{wire.Release, "yes", "another's", "yes"},
		{wire.Release, "no", "yes", "yes"},
		{wire.Release, "another's", "no", "no"},
		{wire.Release, "no", "another's", "another's"},
		{wire.Release, "yes", "lost", "lost"}, // it may have been granted again in between
		{wire.Release, "yes", "noscript", "noscript"},
		{wire.Release, "yes", "loading", "loading"},
		{wire.Release, "noscript", "yes", "yes"},
		{wire.Leave, "yes", "no", "yes"},
		{wire.Leave, "yes", "lost", "lost"},
		{wire.Leave, "no", "noscript", "noscript"},

		{wire.Inspect, "yes", "no vote", "no vote"},
		{wire.Inspect, "yes", "lost", "yes"},
		{wire.Inspect, "noscript", "yes", "yes"},
		{wire.Inspect, "noscript", "lost", "lost"},
	} {
		first, later := answers[tt.first], answers[tt.then]
		if got := then(tt.step, first, &later); fmt.Sprint(got) != fmt.Sprint(answers[tt.want]) {
			t.Errorf("%v: %s, then %s: it comes to %v", tt.step, tt.first, tt.then, got.Status)
		}
	}

	// Whatever the answers are: if the last node that looked does not say that the token is absent,
	// the combined answer does not say so either, or the token would never be given back.
	for one, first := range answers {
		for other, later := range answers {
			for _, step := range []wire.Op{wire.Acquire, wire.Extend} {
				last := later
				if blind(&later) && !blind(&first) {
					last = first
				}
				if got := then(step, first, &later); got.MeansAbsent(step) && !last.MeansAbsent(step) {
					t.Errorf("%v: %s, then %s: %v, and it may be there", step, one, other, got.Status)
				}
			}
			for _, step := range []wire.Op{wire.Release, wire.Leave} {
				if got := then(step, first, &later); got.Status.SettlesRelease() != later.Status.SettlesRelease() {
					t.Errorf("%v: %s, then %s: %v", step, one, other, got.Status)
				}
			}
		}
	}
}

// A scripted connection gives these answers, one batch after another, and accepts scripts.
type scripted struct {
	Server
	says [][]string
}

func (s *scripted) Join() error { return nil }

func (s *scripted) Exec(batch []*Request) error {
	now := s.says[0]
	s.says = s.says[1:]
	for i, q := range batch {
		q.Reply = answers[now[i]]
	}
	return nil
}

// TestReload: all requests from the first one that the server could not carry out are sent again,
// and their combined answers count.
func TestReload(t *testing.T) {
	for _, tt := range []struct {
		steps []wire.Op
		says  [][]string
		want  []string
	}{
		{[]wire.Op{wire.Release, wire.Acquire}, [][]string{{"noscript", "held"}, {"yes", "yes"}}, []string{"yes", "yes"}},
		{[]wire.Op{wire.Extend, wire.Release, wire.Acquire}, [][]string{{"yes", "noscript", "held"}, {"yes", "held"}}, []string{"yes", "yes", "held"}},
		{[]wire.Op{wire.Release, wire.Acquire}, [][]string{{"noscript", "noscript"}, {"noscript", "yes"}, {"no", "noscript"}, {"yes"}}, []string{"no", "yes"}},
		{[]wire.Op{wire.Extend, wire.Acquire, wire.Release}, [][]string{{"noscript", "yes", "yes"}, {"yes", "yes", "lost"}}, []string{"yes", "yes", "lost"}},
		{[]wire.Op{wire.Plain}, [][]string{{"unknown"}}, []string{"unknown"}}, // joined, and not sent again
		{[]wire.Op{wire.Release, wire.Plain, wire.Extend}, [][]string{{"noscript", "yes", "noscript"}, {"yes", "yes"}}, []string{"yes", "yes", "yes"}},
		{[]wire.Op{wire.Acquire}, [][]string{{"noscript"}, {"noscript"}, {"noscript"}, {"noscript"}, {"noscript"}, {"noscript"}}, []string{"noscript"}},
	} {
		var batch []*Request
		for _, step := range tt.steps {
			q := &Request{Op: step, Claim: new(Claim)}
			if step == wire.Plain {
				q.Op, q.Claim.Plain = wire.Acquire, true
			}
			batch = append(batch, q)
		}
		cfg := testConfig()
		if err := carryOut(&scripted{says: tt.says}, testIncarnation(&cfg), batch); err != nil {
			t.Fatal(err)
		}
		for i, want := range tt.want {
			if got := batch[i].Reply; got.Status != answers[want].Status {
				t.Errorf("%v, answered %v: %v comes to %v, want %s", tt.steps, tt.says, tt.steps[i], got.Status, want)
			}
		}
	}
}
