//go:build unix

package main

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock/cmd/redlock/internal/peek"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
)

// prepare counts the members of the set, whichever of them it was given.
func TestPrepareCountsTheMembers(t *testing.T) {
	t.Parallel()
	w := &ward{T: t, servers: redistest.Servers(t, 5, "--appendonly", "yes")}
	w.described(5)
	w.restart(0, 1, 2)
	w.give(0, 1, 2)
	code, stdout, stderr := w.redlock("prepare", "--timeout", "0s")
	if code != 69 || stdout != "" || !strings.Contains(stderr, "redlock: not prepared: 3 of 5 nodes have no vote: ") {
		t.Errorf("exit status %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	w.restart(3)
	if code, stdout, stderr := w.redlock("prepare", "--timeout", "0s", "--quorum", "--json"); code != 69 || !strings.Contains(stdout, `"votes": 1,`) || !strings.Contains(stdout, `"quorum": 3,`) {
		t.Errorf("exit status %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

// prepare makes the set with --max-ttl also if the nodes are started only while it waits, as on a cluster. Otherwise
// the first program would, with its own.
func TestPrepareMakesTheSetOfLateNodes(t *testing.T) {
	t.Parallel()
	w := &ward{T: t, servers: redistest.NewServers(t, 3)}
	w.give(0, 1, 2)
	for _, s := range w.servers {
		s.Kill()
	}
	restarted := make(chan error, 1)
	go func() {
		time.Sleep(peek.Patience + time.Second) // prepare has given up that they make the set at once
		var errs []error
		for _, s := range w.servers {
			errs = append(errs, s.Restart())
		}
		restarted <- errors.Join(errs...)
	}()
	code, stdout, stderr := w.redlock("prepare", "--ttl", "1s", "--max-ttl", "3s", "--timeout", "1m")
	if err := <-restarted; err != nil {
		t.Fatal(err)
	}
	if code != 0 || stdout != "all 3 nodes vote\n" || strings.Contains(stderr, "the set is not made yet") {
		t.Errorf("exit status %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	if code, stdout, stderr := w.redlock("members"); code != 0 || !strings.Contains(stdout, "MaxTTL 3s") {
		t.Errorf("exit status %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

// What --fresh cannot see it does not call empty: data in another database, or data that the user may not count.
func TestFreshSeesWhatThereIs(t *testing.T) {
	rights := regexp.MustCompile(`(?m)^user locks on >PASSWORD (.*)$`).FindStringSubmatch(document(t, "operations.md"))
	if rights == nil {
		t.Fatal("docs/operations.md has no user for locks")
	}
	for _, c := range []struct {
		name, command string
		fresh         bool
	}{
		{"nothing", "ping", true},
		{"other data", "set orders:17 data", false},
		{"a lock of another library", "set job a-token px 60000", false},
		{"only what a set keeps", "set redlock:set {}", false},
	} {
		for _, user := range []string{"", "locks:PASSWORD@"} {
			t.Run(c.name+" "+user, func(t *testing.T) {
				t.Parallel()
				w := &ward{T: t, servers: redistest.NewServers(t, 3)}
				w.at("acl setuser locks on >PASSWORD "+rights[1], 0, 1, 2)
				w.at(c.command, 0, 1, 2)
				w.give(0, 1, 2)
				for i, v := range w.env {
					w.env[i] = strings.ReplaceAll(v, "redis://", "redis://"+user)
				}
				code, stdout, stderr := w.redlock("prepare", "--fresh", "--timeout", "0s")
				if fresh := code == 0 && stdout == "all 3 nodes vote\n"; fresh != c.fresh || !c.fresh && !strings.Contains(stderr, "redlock: --fresh changes nothing: 3 of 3 nodes are not empty ") {
					t.Errorf("exit status %d, stdout %q, stderr %q", code, stdout, stderr)
				}
			})
		}
	}
	t.Run("another database", func(t *testing.T) {
		t.Parallel()
		w := &ward{T: t, servers: redistest.NewServers(t, 3)}
		w.give(0, 1, 2)
		w.env[1] = strings.ReplaceAll(w.env[1]+",", ",", "/1,")
		w.env[1] = strings.TrimSuffix(w.env[1], ",")
		w.at("set job token px 60000", 0, 1, 2)
		code, stdout, stderr := w.redlock("prepare", "--fresh", "--timeout", "0s")
		if code != 69 || !strings.Contains(stderr, "redlock: --fresh changes nothing: 3 of 3 nodes are not empty ") {
			t.Errorf("exit status %d, stdout %q, stderr %q", code, stdout, stderr)
		}
	})
}
