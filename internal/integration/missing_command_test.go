package integration_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/testbed/redisproc"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// TestServerLacksACommand: a server to which a command is not known that locks need is refused when programs start,
// by the name of the command, and with what to do. Without the others there are locks.
func TestServerLacksACommand(t *testing.T) {
	leaks.Check(t)
	need.Servers(t, redisproc.Available)
	commands := []string{"SCRIPT", "EVAL", "EVALSHA", "SUBSCRIBE", "CONFIG", "CLIENT", "SCAN", "HELLO", "COMMAND", "SELECT"}
	for _, command := range calledBy(append(script.All(""), script.New(script.Join), script.New(script.Choose))) {
		commands = append(commands, strings.ToUpper(command))
	}
	optional := []string{"SUBSCRIBE", "CONFIG", "CLIENT", "SCAN", "HELLO", "COMMAND", "SELECT", "PUBLISH"}
	slices.Sort(commands)
	commands = slices.Compact(commands)
	commands = slices.DeleteFunc(commands, func(c string) bool { return c == "TIME" || c == "SET" }) // redistest.Servers needs them
	if len(commands) < 28 {
		t.Fatalf("only %d commands: %q", len(commands), commands)
	}
	t.Run("without", func(t *testing.T) {
		for _, command := range commands {
			t.Run(command, func(t *testing.T) {
				t.Parallel()
				server := redistest.Servers(t, 1, "--rename-command", command, "another-name")[0]
				lk, err := redlock.Connect([]string{server.URL()}, trusting())
				if slices.Contains(optional, command) {
					if err != nil {
						t.Fatal(err)
					}
					defer lk.Close()
					released(t, acquired(t, lk, "a"))
					return
				}
				if err == nil {
					lk.Close()
				}
				var node *redlock.NodeError
				for _, want := range []string{"node " + server.Addr + ": ineligible: ERR unknown command '" + strings.ToLower(command) + "': this server does not have " + command, "give " + command + " its name back"} {
					if !strings.Contains(fmt.Sprint(err), want) || !errors.As(err, &node) {
						t.Errorf("got %v, want %q", err, want)
					}
				}
			})
		}
	})
}

// TestProbeOfALimitedUser: a user that may use few keys and few commands is not taken for a server without them.
func TestProbeOfALimitedUser(t *testing.T) {
	leaks.Check(t)
	server := redistest.Servers(t, 1)[0]
	for _, rules := range [][]any{
		{"resetkeys", "~redlock:*", "~a*"},
		{"resetkeys", "~a*"},
		{"resetkeys", "%R~redlock:*", "~a*"},
		{"allkeys", "-zadd", "-get"},
		{"resetkeys", "~a*", "(~redlock:* +@all)"},
	} {
		ask(t, server, append([]any{"ACL", "SETUSER", "one", "reset", "on", ">p", "+@all"}, rules...)...)
		lk, err := redlock.Connect([]string{"redis://one:p@" + server.Addr}, trusting())
		if err != nil {
			t.Errorf("%v: %v", rules, err)
			continue
		}
		_ = lk.Close()
	}
	if got := ask(t, server, "PING"); got != "PONG" {
		t.Error(got)
	}
}
