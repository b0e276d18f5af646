// Package script holds the Lua that runs on the nodes, a file for each step.
// Every file's header says its keys, arguments and reply, and why it is atomic.
// The scripts need nothing newer than Redis 6.
package script

import (
	_ "embed"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed acquire.lua
	acquire string
	//go:embed extend.lua
	extend string
	//go:embed release.lua
	release string
)

// A Script is one step: its source, and the hash by which a server that has
// loaded it knows it.
type Script struct{ Source, Hash string }

var (
	Acquire = hashed(acquire)
	Extend  = hashed(extend)
	Release = hashed(release)
)

// All lists the scripts, for loading them into a server.
var All = []Script{Acquire, Extend, Release}

func hashed(source string) Script {
	return Script{Source: source, Hash: redis.NewScript(source).Hash()}
}
