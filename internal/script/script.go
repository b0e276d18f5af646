// Package script holds the Lua that runs on the nodes, a file for each step.
// Every file's header says its keys, arguments and reply, and why it is atomic.
// The scripts need nothing newer than Redis 6.
package script

import (
	_ "embed"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed queue.lua
	queue string
	//go:embed acquire.lua
	acquire string
	//go:embed raise.lua
	raise string
	//go:embed extend.lua
	extend string
	//go:embed leave.lua
	leave string
	//go:embed yield.lua
	yield string
	//go:embed release.lua
	release string
	//go:embed inspect.lua
	inspect string

	// Join is not loaded: it runs once for each connection.
	//go:embed join.lua
	Join string
)

// A Script is one step: its source, and the hash by which a server that has
// loaded it knows it.
type Script struct{ Source, Hash string }

var (
	Raise   = hashed(raise)
	Extend  = hashed(extend)
	Release = hashed(queue + release)
	Leave   = hashed(queue + leave)
	Yield   = hashed(queue + yield)
	Inspect = hashed(inspect)
)

// Acquire is the script for a server with this run_id, which it carries in its
// text: another server, or the same one after a restart, does not know it, and says
// so. That is how a restart shows even through a proxy that hides it.
func Acquire(runID string) Script { return hashed("-- for " + runID + "\n" + queue + acquire) }

// All lists the scripts for a server, for loading them.
func All(runID string) []Script {
	return []Script{Acquire(runID), Raise, Extend, Release, Leave, Yield, Inspect}
}

func hashed(source string) Script {
	return Script{Source: source, Hash: redis.NewScript(source).Hash()}
}
