package integration_test

import (
	"testing"

	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"github.com/quorumlock/redlock/internal/wire"
)

// TestWhatScriptsRaise: the error text of a server that has set the key and then refuses a command
// differs from that of a server that has refused the script.
func TestWhatScriptsRaise(t *testing.T) {
	leaks.Check(t)
	c := redistest.Clients(t, redistest.Servers(t, 1))[0]
	acl := func(args ...any) {
		t.Helper()
		if err := c.Do(t.Context(), append([]any{"ACL", "SETUSER", "default"}, args...)...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	acl("-zrem")
	err := c.Eval(t.Context(), "redis.call('SET', KEYS[1], 'token'); redis.call('ZREM', 'a:queue', 'me')", []string{"a"}).Err()
	r := wire.Parse(wire.Acquire, nil, err)
	if r.Status = wire.Denied; r.MeansAbsent(wire.Acquire) || c.Get(t.Context(), "a").Val() != "token" {
		t.Errorf("%q counts as leaving nothing", err)
	}
	acl("-evalsha")
	err = c.EvalSha(t.Context(), "4f2956079d366f20bd8f52df35b6018df5313e58", []string{"a"}).Err()
	if r := wire.Parse(wire.Acquire, nil, err); r.Status != wire.Denied || !r.MeansAbsent(wire.Acquire) {
		t.Errorf("%q counts as leaving a key: there would be a release for every acquire", err)
	}
}
