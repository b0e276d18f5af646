package main

import (
	"time"

	"github.com/quorumlock/redlock/cmd/redlock/internal/proc"
)

// again is how long redlock elect leaves the lock to other candidates when its command has
// ended.
var again = time.Second

// elect is redlock elect: leader election. The command runs whenever the lock is held.
func (c *command) elect(name string, args []string) (int, error) {
	cfg := newHoldConfig()
	f := newFlags(name) // without those of how long to wait, and for what kind of lock: there is one leader
	cfg.addNames(f)
	cfg.addCommand(f)
	if err := cfg.parse(f, args); err != nil {
		return 0, err
	}
	session, err := c.openSession(cfg)
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
			c.say("%v", err)
		} else {
			c.note("%q: the command has ended (%v); stands for election again in %v", cfg.keys[0], h.group, again)
		}
		select {
		case <-time.After(again):
		case sig := <-session.signals:
			return proc.Interrupted{Signal: sig}.Code(), nil
		}
	}
}
