// Package run has the verbs that run a command under a lock: run once, elect whenever it is the leader.
package run

import (
	"github.com/quorumlock/redlock/cmd/redlock/internal/console"
	"github.com/quorumlock/redlock/cmd/redlock/internal/flags"
)

// Run is redlock run: it runs a command once, under a lock.
func Run(c *console.Console, name string, args []string) (int, error) {
	cfg := newHoldConfig()
	f := flags.New(name)
	cfg.AddNames(f)
	cfg.AddKinds(f)
	cfg.addCommand(f)
	addSpan(f, "once", &cfg.once)
	addSpan(f, "min-hold", &cfg.MinHold)
	addSpan(f, "max-hold", &cfg.MaxHold)
	f.Toggle("leave-running", "", &cfg.leave)
	cfg.mayLeave = " (--leave-running lets it run on)"
	if err := cfg.parse(f, args); err != nil {
		return 0, err
	}
	session, err := openSession(c, cfg)
	if err != nil {
		return 0, err
	}
	defer session.close()
	h, err := session.await()
	if err != nil {
		return 0, err
	}
	return h.run()
}
