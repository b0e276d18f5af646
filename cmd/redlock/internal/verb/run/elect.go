package run

import (
	"time"

	"github.com/quorumlock/redlock/cmd/redlock/internal/console"
	"github.com/quorumlock/redlock/cmd/redlock/internal/flags"
	"github.com/quorumlock/redlock/cmd/redlock/internal/proc"
)

// Again is how long redlock elect leaves the lock to other candidates after its command has ended. Tests make it
// shorter.
var Again = time.Second

// Elect is redlock elect, a leader election: the command runs whenever this candidate holds the lock.
func Elect(c *console.Console, name string, args []string) (int, error) {
	cfg := newHoldConfig()
	f := flags.New(name) // no timeout, and no shared lock or slots: there is one leader
	cfg.AddNames(f)
	cfg.addCommand(f)
	if err := cfg.parse(f, args); err != nil {
		return 0, err
	}
	session, err := openSession(c, cfg)
	if err != nil {
		return 0, err
	}
	defer session.close()
	for {
		h, err := session.await()
		if err != nil {
			return 0, err
		}
		code, err := h.run()
		if h.told || h.refused {
			return code, err
		}
		if err != nil {
			c.Say("%v", err)
		} else {
			c.Note("%q: the command has ended (%v); stands for election again in %v", cfg.Keys[0], h.group, Again)
		}
		select {
		case <-time.After(Again):
		case sig := <-session.signals:
			return proc.Interrupted{Signal: sig}.Code(), nil
		}
	}
}
