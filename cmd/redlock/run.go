package main

// run is redlock run: a command under a lock, once.
func (c *command) run(name string, args []string) (int, error) {
	cfg := newHoldConfig()
	f := newFlags(name)
	cfg.addNames(f)
	cfg.addKinds(f)
	cfg.addCommand(f)
	addSpan(f, "min-hold", &cfg.minHold)
	addSpan(f, "max-hold", &cfg.maxHold)
	if err := cfg.parse(f, args); err != nil {
		return 0, err
	}
	stand, err := c.openStand(cfg)
	if err != nil {
		return 0, err
	}
	defer stand.close()
	h, err := stand.await()
	if err != nil {
		return 0, err
	}
	return h.run()
}
