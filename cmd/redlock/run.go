package main

// run is redlock run: it runs a command once, under a lock.
func (c *command) run(name string, args []string) (int, error) {
	cfg := newHoldConfig()
	f := newFlags(name)
	cfg.addNames(f)
	cfg.addKinds(f)
	cfg.addCommand(f)
	addSpan(f, "min-hold", &cfg.minHold)
	addSpan(f, "max-hold", &cfg.maxHold)
	f.toggle("leave-running", "", &cfg.leave)
	cfg.mayLeave = " (--leave-running lets it run on)"
	if err := cfg.parse(f, args); err != nil {
		return 0, err
	}
	session, err := c.openSession(cfg)
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
