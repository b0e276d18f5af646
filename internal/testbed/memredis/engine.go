package memredis

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/quorumlock/redlock/internal/script"
)

// An Engine is the part of a node that executes commands: a miniredis that never
// listens. Connections are handed to it, so the same engine serves TCP
// connections and, in a testing/synctest bubble, pipes.
//
// There is a second reason not to let miniredis listen: it accepts connections
// before it has registered its commands, and a client that reconnects in a hurry
// is told that the command HELLO is unknown.
type Engine struct {
	Info *Info

	mini *miniredis.Miniredis
	srv  atomic.Pointer[server.Server] // miniredis' own, of this run or the last

	// What goes wrong: see faults.go.
	refusal            atomic.Pointer[Refusal]
	scripts            atomic.Int64 // that run, or are about to
	repeat, repeatLate atomic.Int64
	ahead              atomic.Pointer[time.Duration] // of the system's clock; nil: it never was
	late               atomic.Pointer[lateness]

	newer atomic.Bool // see HaveDelex

	loading sync.Mutex        // protects loaded and hashes
	loaded  map[string]string // scripts by their hashes, as they run
	hashes  map[string]string // theirs, by their sources: each connection loads them again

	// mu protects up, and keeps a connection from being served after Stop has closed the others.
	// It is never held while waiting.
	mu sync.Mutex
	up bool
}

// NewEngine returns a running engine without data. The port is only for INFO to
// mention.
func NewEngine(port int) *Engine {
	e := &Engine{Info: NewInfo(port), mini: miniredis.NewMiniRedis(), loaded: make(map[string]string), hashes: make(map[string]string)}
	e.Info.keys = e.sizes
	e.mini.ClockTTL(true) // keys expire by the clock; a bubble's clock in a bubble
	e.settle()
	e.boot()
	return e
}

// settle gives the node the marker of one that has been there for long: it has
// nothing that it could have forgotten.
func (e *Engine) settle() {
	if err := e.mini.Set(script.Marker, script.Settled(e.Info.RunID(), time.Now())); err != nil {
		panic(err) // it is no string: there is nothing yet
	}
}

// boot makes miniredis ready for connections while nobody can have one yet.
func (e *Engine) boot() {
	e.mini.Lock()
	// Close has cancelled the context, and with it every blocking command to come.
	e.mini.Ctx, e.mini.CtxCancel = context.WithCancel(context.Background())
	e.mini.Unlock()

	// A first connection is what starts a miniredis without a listener. It cannot
	// fail, because nothing but a pipe is made.
	conn, err := e.mini.Dial()
	if err != nil {
		panic(err)
	}
	srv := e.mini.Server()
	srv.SetPreHook(e.hook)
	e.srv.Store(srv)
	e.FlushScripts() // real servers keep none over a restart; miniredis would
	_ = conn.Close()

	e.mu.Lock()
	e.up = true
	e.mu.Unlock()
}

// Serve executes what arrives on conn until either side closes it. It returns at
// once: false, with conn closed, if the engine is stopped.
func (e *Engine) Serve(conn net.Conn) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.up {
		_ = conn.Close()
		return false
	}
	e.mini.Server().ServeConn(conn)
	return true
}

// Stop closes all connections and waits until no command runs any more. The data
// stay in memory until Start decides about them. Stop and Start must not be
// called at the same time.
func (e *Engine) Stop() {
	e.mu.Lock()
	e.up = false
	e.mu.Unlock()
	e.mini.Close()
}

// Start starts a stopped engine, as a new run of the server. With keepData, keys
// have gone on expiring while it was stopped, as with a real server whose data
// are on disk.
func (e *Engine) Start(keepData bool) {
	if !keepData {
		e.mini.FlushAll()
	}
	e.Info.Renew()
	e.boot()
}

// HaveDelex gives the node DELEX, as a newer server has it. miniredis has it, but without SET IFEQ: so
// without this, a node is like an older server. Clients that have connected do not notice.
func (e *Engine) HaveDelex() { e.newer.Store(true) }

// Running reports whether connections are served.
func (e *Engine) Running() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.up
}

// Keys lists the keys of the first database, sorted, also of a stopped engine, but
// for those that stay when all locks are gone.
func (e *Engine) Keys() []string {
	e.tell()
	return slices.DeleteFunc(e.mini.DB(0).Keys(), script.Lasting)
}

// databases is how many a server has.
const databases = 16

// sizes are how many keys the databases have that have some.
func (e *Engine) sizes() map[int]int {
	sizes := make(map[int]int)
	for db := range databases {
		if n := len(e.mini.DB(db).Keys()); n > 0 {
			sizes[db] = n
		}
	}
	return sizes
}

// Mini is the miniredis inside, the same one over all restarts, for a test that
// wants to look at values or to set its time.
func (e *Engine) Mini() *miniredis.Miniredis { return e.mini }
