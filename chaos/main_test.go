package chaos

import (
	"testing"

	"github.com/quorumlock/redlock/chaos/internal/judge"
	"github.com/quorumlock/redlock/chaos/internal/realtest"
)

func TestMain(m *testing.M) {
	ClientMain()
	realtest.Main(m)
}

// rules are the judge's, as the documents list them.
var rules = func() (all []struct{ name, says string }) {
	for _, r := range judge.Rules {
		all = append(all, struct{ name, says string }{r.Name, r.Says})
	}
	return all
}()
