package chaos

import (
	"time"

	"github.com/quorumlock/redlock/chaos/internal/miniarena"
	"github.com/quorumlock/redlock/chaos/internal/modelarena"
	"github.com/quorumlock/redlock/chaos/internal/realarena"
	"github.com/quorumlock/redlock/internal/testbed/memredis"
	"github.com/quorumlock/redlock/internal/testbed/model"
	"github.com/quorumlock/redlock/internal/testbed/redisproc"
)

// Miniredis runs the library with the real client and the real scripts against nodes in this
// process, in virtual time. It includes what go-redis does with a connection that hangs, breaks or
// gets half an answer, and the nodes run the Lua. A seed gives the same faults every time, and
// nearly the same history.
//
// It can inject nearly all kinds of fault. But the nodes' clocks all run at one speed, so it does
// not use Plan.Rates.
var Miniredis = &Arena{
	Name:   "miniredis",
	About:  "the library with go-redis and Lua over in-process nodes, in virtual time",
	Lag:    4 * model.Moment,
	Exact:  true,
	cannot: miniarena.Cannot,
	ready:  memredis.Available,
	run:    miniarena.Run,
}

// Model runs the library over models of nodes, in virtual time: thousands of schedules a second,
// each of which gives the same history whenever it is run.
var Model = &Arena{
	Name:   "model",
	About:  "the library over in-memory model nodes, in virtual time",
	Lag:    4 * model.Moment,
	Exact:  true,
	cannot: modelarena.Cannot,
	run:    modelarena.Run,
}

// Real runs clients in processes of their own against redis-server processes, through proxies that
// break the network. Its time is real. A program that runs plans here calls [ClientMain] first.
var Real = &Arena{
	Name:   "real",
	About:  "clients in processes of their own over redis-server processes, with signals and a broken network",
	Lag:    100 * time.Millisecond,
	Least:  200 * time.Millisecond,
	Most:   time.Second,
	Room:   12, // more processes would wait for the computer, and not for locks
	ready:  redisproc.Available,
	cannot: realarena.Cannot,
	run:    realarena.Run,
}

// Arenas lists all arenas, the fastest first.
var Arenas = []*Arena{Model, Miniredis, Real}
