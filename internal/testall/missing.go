package main

import (
	"fmt"
	"os"
	"os/exec"

	"github.com/quorumlock/redlock/internal/testbed/pgtest"
	"github.com/quorumlock/redlock/internal/testbed/redisproc"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// missing names the kinds of tests that this machine cannot run, and why. It looks for the same programs as
// the tests; what they then skip is in the last line.
func missing() (kinds []string) {
	add := func(kind string, err error) {
		if err != nil {
			kinds = append(kinds, fmt.Sprintf("%s%s (%v)", need.SkipPrefix, kind, err))
		}
	}
	if err := redisproc.Available(); err != nil {
		add(need.WithServers, err)
	} else {
		add(need.WithServers+" that need a clock of its own", redisproc.CanStepClock())
	}
	_, err := need.FindChromium()
	add(need.InChromium, err)
	_, err = need.FindTmux()
	add(need.InTmux, err)
	_, err = exec.LookPath("haproxy")
	add(need.WithHAProxy, err)
	add(need.WithPostgres, pgtest.Installed())
	if os.Getenv(redistest.OldRedis) == "" {
		add(need.WithOldRedis, fmt.Errorf("%s does not name its redis-server", redistest.OldRedis))
	}
	return kinds
}
