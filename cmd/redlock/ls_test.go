//go:build unix

package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/cmd/redlock/internal/reach"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
)

// TestLsNeedsScan: the user of docs/operations.md lists locks with +scan, and without it reads which node
// refuses what, and what to add.
func TestLsNeedsScan(t *testing.T) {
	t.Parallel()
	manual, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	rule := regexp.MustCompile(`(?m)^user (locks on >PASSWORD .*)$`).FindSubmatch(manual)
	if rule == nil {
		t.Fatal("docs/operations.md has no user")
	}
	var urls []string
	servers := redistest.Servers(t, 3)
	for _, s := range servers {
		if _, err := ask(s.Addr, append([]string{"ACL", "SETUSER"}, strings.Fields(string(rule[1]))...)); err != nil {
			t.Fatal(err)
		}
		urls = append(urls, "redis://locks:PASSWORD@"+s.Addr)
		if err := set(t, s.Addr); err != nil {
			t.Fatal(err)
		}
	}
	env := append(os.Environ(), reach.NodesVariable+"="+strings.Join(urls, ","))
	call := func(args ...string) (code int, stdout, stderr string) {
		var out, err strings.Builder
		code = main1(args, env, strings.NewReader(""), &out, &err)
		return code, out.String(), err.String()
	}
	code, out, said := call("ls")
	if code != 69 || !strings.Contains(out, "3 of 3 nodes could not be listed: "+servers[0].Addr+": denied: NOPERM ") || !strings.Contains(out, "'scan'") || !strings.Contains(said, "hint: redlock ls needs SCAN besides what locks need: add +scan ") {
		t.Errorf("without +scan: exit code %d, %q, %q", code, out, said)
	}
	if code, out, said := call("ls", "k"); code != 0 || !strings.Contains(out, "\nk ") || said != "" {
		t.Errorf("one name, without +scan: exit code %d, %q, %q", code, out, said)
	}
	for i, s := range servers {
		if _, err := ask(s.Addr, []string{"ACL", "SETUSER", "locks", "+scan"}); err != nil {
			t.Fatal(err)
		}
		code, out, said := call("ls")
		switch {
		case i == 1 && (code != 0 || !strings.Contains(out, "1 lock on 3 nodes; 1 of 3 nodes could not be listed: "+servers[2].Addr) || !strings.Contains(said, "add +scan ")):
			t.Errorf("with +scan at two nodes: exit code %d, %q, %q", code, out, said)
		case i == 2 && (code != 0 || !strings.HasSuffix(out, "\n\n1 lock on 3 nodes\n") || said != ""):
			t.Errorf("with +scan: exit code %d, %q, %q", code, out, said)
		}
	}
}

func set(t *testing.T, addr string) error {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()
	return rdb.Set(t.Context(), "k", "tok", time.Minute).Err()
}
