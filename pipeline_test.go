package redlock

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quorumlock/redlock/internal/redistest"
)

var (
	errNoScript     error = redisError("NOSCRIPT No matching script. Please use EVAL.")
	errDeniedWithin error = redisError("ERR ACL failure in script: User me has no permissions to run the 'zrem' command script: 4f29, on @user_script:1.")
)

// answers are those that a node may give, by what they say.
var answers = map[string]reply{
	"yes":       {outcome: Granted, fence: 1},
	"no":        {outcome: Expired},
	"another's": {outcome: Stolen, holder: "another"},
	"held":      {outcome: Held, holder: "another"},
	"reserved":  {outcome: Reserved, holder: "another"},
	"no lock":   {outcome: Foreign, err: errNoTTL},
	"late":      {outcome: Late, err: errLate},
	"forgot":    {outcome: Quarantined, err: errForgot},
	"no vote":   {outcome: Quarantined}, // and the token is there
	"noscript":  {outcome: Failed, err: errNoScript},
	"loading":   {outcome: Loading, err: errLoading},
	"denied":    {outcome: Denied, err: errDenied},
	"raised":    {outcome: Denied, err: errDeniedWithin},
	"full":      {outcome: OutOfMemory, err: redisError("OOM command not allowed when used memory > 'maxmemory'. script: 4f29, on @user_script:1.")},
	"lost":      {outcome: Unreachable, err: errCut},
}

// TestSentTwice: what the answers to a step come to that was sent once more, since the server
// had dropped its scripts.
func TestSentTwice(t *testing.T) {
	for _, tt := range []struct {
		step              op
		first, then, want string
	}{
		// The later one is true now, and a refusal may have become a grant.
		{opAcquire, "noscript", "yes", "yes"},
		{opAcquire, "noscript", "held", "held"},
		{opAcquire, "held", "yes", "yes"},
		{opAcquire, "held", "held", "held"},
		{opAcquire, "reserved", "yes", "yes"},
		{opAcquire, "no lock", "yes", "yes"},
		{opAcquire, "forgot", "yes", "yes"},
		{opAcquire, "late", "yes", "yes"},
		{opAcquire, "held", "no vote", "no vote"},
		{opAcquire, "held", "lost", "lost"}, // it may have been granted
		{opAcquire, "held", "raised", "raised"},
		{opAcquire, "yes", "yes", "yes"},
		{opAcquire, "yes", "held", "held"},
		{opAcquire, "yes", "no vote", "no vote"},
		{opAcquire, "yes", "forgot", "forgot"},
		{opAcquire, "yes", "lost", "lost"}, // no vote, and perhaps there
		{opAcquire, "yes", "full", "full"}, // had it been there, it would have said so
		{opAcquire, "raised", "held", "held"},
		// One that did not look says nothing.
		{opAcquire, "yes", "late", "yes"},
		{opAcquire, "yes", "noscript", "yes"},
		{opAcquire, "yes", "loading", "yes"},
		{opAcquire, "yes", "denied", "yes"},
		{opAcquire, "held", "late", "held"},
		{opAcquire, "held", "noscript", "held"},
		{opAcquire, "raised", "late", "raised"},
		{opAcquire, "lost", "noscript", "lost"},
		{opAcquire, "noscript", "noscript", "noscript"},
		{opAcquire, "noscript", "denied", "denied"},

		{opRaise, "yes", "no", "yes"}, // it was stored in its time
		{opRaise, "yes", "lost", "yes"},
		{opRaise, "yes", "noscript", "yes"},
		{opRaise, "no", "yes", "yes"},
		{opRaise, "no", "lost", "lost"},
		{opRaise, "no", "noscript", "no"},
		{opRaise, "noscript", "no", "no"},

		{opExtend, "yes", "yes", "yes"},
		{opExtend, "yes", "no", "no"},
		{opExtend, "yes", "another's", "another's"},
		{opExtend, "yes", "lost", "lost"},
		{opExtend, "yes", "noscript", "yes"},
		{opExtend, "no", "yes", "yes"},
		{opExtend, "another's", "yes", "yes"},
		{opExtend, "noscript", "yes", "yes"},

		{opRelease, "yes", "no", "yes"}, // the first one had deleted it
		{opRelease, "yes", "another's", "yes"},
		{opRelease, "no", "yes", "yes"},
		{opRelease, "another's", "no", "no"},
		{opRelease, "no", "another's", "another's"},
		{opRelease, "yes", "lost", "lost"}, // it may have been granted again in between
		{opRelease, "yes", "noscript", "noscript"},
		{opRelease, "yes", "loading", "loading"},
		{opRelease, "noscript", "yes", "yes"},
		{opLeave, "yes", "no", "yes"},
		{opLeave, "yes", "lost", "lost"},
		{opLeave, "no", "noscript", "noscript"},

		{opInspect, "yes", "no vote", "no vote"},
		{opInspect, "yes", "lost", "yes"},
		{opInspect, "noscript", "yes", "yes"},
		{opInspect, "noscript", "lost", "lost"},
	} {
		first, later := answers[tt.first], answers[tt.then]
		if got := first.then(tt.step, &later); fmt.Sprint(got) != fmt.Sprint(answers[tt.want]) {
			t.Errorf("%v: %s, then %s: it comes to %v", tt.step, tt.first, tt.then, got.outcome)
		}
	}

	// Whatever the answers are: where the last one that looked does not say that the token is
	// absent, what they come to does not either, or nobody would give it back.
	for one, first := range answers {
		for other, later := range answers {
			for _, step := range []op{opAcquire, opExtend} {
				last := later
				if later.blind() && !first.blind() {
					last = first
				}
				if got := first.then(step, &later); got.meansAbsent(step) && !last.meansAbsent(step) {
					t.Errorf("%v: %s, then %s: %v, and it may be there", step, one, other, got.outcome)
				}
			}
			for _, step := range []op{opRelease, opLeave} {
				if got := first.then(step, &later); got.outcome.settlesRelease() != later.outcome.settlesRelease() {
					t.Errorf("%v: %s, then %s: %v", step, one, other, got.outcome)
				}
			}
		}
	}
}

// TestDeniedIsNotAbsent: after an acquire that was answered by an error, the token is given
// back where a script may have written it before.
func TestDeniedIsNotAbsent(t *testing.T) {
	for text, absent := range map[string]bool{
		"NOPERM User default has no permissions to run the 'evalsha' command":                                                                true,
		"NOPERM this user has no permissions to run the 'evalsha' command or its subcommand":                                                 true,
		"NOPERM No permissions to access a key":                                                                                              true,
		"NOAUTH Authentication required.":                                                                                                    true,
		"LOADING Redis is loading the dataset in memory":                                                                                     true,
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'. script: 4f29, on @user_script:1.":                  true,
		"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.":                                             true,
		"READONLY You can't write against a read only replica. script: 4f29, on @user_script:1.":                                             true,
		"ERR Error running script (call to f_4f29): @user_script:1: @user_script: 1: -READONLY You can't write against a read only replica.": true,
		"OOM command not allowed when used memory > 'maxmemory'. script: 4f29, on @user_script:1.":                                           true,
		"WRONGTYPE a:fence is no number: it cannot be the counter of a":                                                                      true,
		"WRONGTYPE Operation against a key holding the wrong kind of value":                                                                  true,

		"WRONGTYPE Operation against a key holding the wrong kind of value script: 4f29, on @user_script:1.":                                             false,
		"NOPERM ACL failure in script: User default has no permissions to run the 'zrem' command":                                                        false,
		"ERR ACL failure in script: User default has no permissions to run the 'zrem' command script: 4f29, on @user_script:1.":                          false,
		"ERR ACL failure in script: User default has no permissions to run the 'zrem' command script: on @user_script:1.":                                false,
		"ERR The user executing the script can't run this command or subcommand script: 4f29, on @user_script:1.":                                        false,
		"ERR Error running script (call to f_4f29): @user_script:1: @user_script: 1: The user executing the script can't run this command or subcommand": false,
		"ERR something else": false,
	} {
		r := parse(opAcquire, nil, redisError(text))
		if r.meansAbsent(opAcquire) != absent {
			t.Errorf("%v, %q: absent is %v", r.outcome, text, !absent)
		}
		if r.outcome = Denied; strings.Contains(text, "script: User") && r.meansAbsent(opAcquire) {
			t.Errorf("%q, if it came to be called denied: absent", text)
		}
	}
}

// TestWhatScriptsRaise: a server that has set the key and then refuses a command says so in
// words that tell the error from one that came before the script.
func TestWhatScriptsRaise(t *testing.T) {
	redistest.NoLeaks(t)
	c := redistest.Clients(t, redistest.Servers(t, 1))[0]
	acl := func(args ...any) {
		t.Helper()
		if err := c.Do(t.Context(), append([]any{"ACL", "SETUSER", "default"}, args...)...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	acl("-zrem")
	err := c.Eval(t.Context(), "redis.call('SET', KEYS[1], 'token'); redis.call('ZREM', 'a:queue', 'me')", []string{"a"}).Err()
	r := parse(opAcquire, nil, err)
	if r.outcome = Denied; r.meansAbsent(opAcquire) || c.Get(t.Context(), "a").Val() != "token" {
		t.Errorf("%q is said to leave nothing", err)
	}
	acl("-evalsha")
	err = c.EvalSha(t.Context(), "4f2956079d366f20bd8f52df35b6018df5313e58", []string{"a"}).Err()
	if r := parse(opAcquire, nil, err); r.outcome != Denied || !r.meansAbsent(opAcquire) {
		t.Errorf("%q is said to leave something: there would be a release for every acquire", err)
	}
}

// A scripted connection gives these answers, a batch after another, and takes scripts.
type scripted struct{ says [][]string }

func (s *scripted) join() error { return nil }

func (s *scripted) pipeline(batch []*request) error {
	now := s.says[0]
	s.says = s.says[1:]
	for i, q := range batch {
		q.reply = answers[now[i]]
	}
	return nil
}

// TestReload: from the first request that the server did not know how to carry out, all are
// sent again, and what became of them counts.
func TestReload(t *testing.T) {
	for _, tt := range []struct {
		steps []op
		says  [][]string
		want  []string
	}{
		{[]op{opRelease, opAcquire}, [][]string{{"noscript", "held"}, {"yes", "yes"}}, []string{"yes", "yes"}},
		{[]op{opExtend, opRelease, opAcquire}, [][]string{{"yes", "noscript", "held"}, {"yes", "held"}}, []string{"yes", "yes", "held"}},
		{[]op{opRelease, opAcquire}, [][]string{{"noscript", "noscript"}, {"noscript", "yes"}, {"no", "noscript"}, {"yes"}}, []string{"no", "yes"}},
		{[]op{opExtend, opAcquire, opRelease}, [][]string{{"noscript", "yes", "yes"}, {"yes", "yes", "lost"}}, []string{"yes", "yes", "lost"}},
		{[]op{opAcquire}, [][]string{{"noscript"}, {"noscript"}, {"noscript"}, {"noscript"}, {"noscript"}, {"noscript"}}, []string{"noscript"}},
	} {
		var batch []*request
		for _, step := range tt.steps {
			batch = append(batch, &request{op: step, claim: new(claim)})
		}
		o, err := (&Options{}).withDefaults(1)
		if err != nil {
			t.Fatal(err)
		}
		if err := carryOut(&scripted{tt.says}, newMemory(0, "node0", &o), batch); err != nil {
			t.Fatal(err)
		}
		for i, want := range tt.want {
			if got := batch[i].reply; got.outcome != answers[want].outcome {
				t.Errorf("%v, answered %v: %v comes to %v, want %s", tt.steps, tt.says, tt.steps[i], got.outcome, want)
			}
		}
	}
}
