package main

// run is redlock run: a command under a lock, once.
func (c *command) run(name string, args []string) (int, error) {
	cfg := newHoldConfig()
	if err := cfg.parse(name, args, cfg.values(), cfg.switches()); err != nil {
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
