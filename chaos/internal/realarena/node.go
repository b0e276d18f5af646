package realarena

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/chaos/internal/drive"
	"github.com/quorumlock/redlock/chaos/internal/inject"
	"github.com/quorumlock/redlock/internal/fresh"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/testbed/faultproxy"
	"github.com/quorumlock/redlock/internal/testbed/redisproc"
	"github.com/quorumlock/redlock/internal/wire"
)

// A node is a redis-server, with the network in front of it and the faults of both.
type node struct {
	server *redisproc.Server
	proxy  *faultproxy.Proxy
	locks  []string // their keys
	diary  diary    // of its file
	others []*node  // those whose files it may get

	flipped atomic.Bool // bits of its file were others: it may have keys that no client has set, or be refused

	mu         sync.Mutex
	admin      *redis.Client // not through the proxy
	down, hung bool
	died       time.Time
	should, is map[history.FaultKind]bool // see settings
	half       map[history.FaultKind]bool // not known whether it is, since the change could not be finished
	script     chan struct{}              // closed when the long script has ended; nil: there is none
	failure    error                      // why the server is not as it should be
}

// With nodeArgs confirmed writes survive a SIGKILL: Redis writes its file before it replies. It
// does not wait for the disk, which would matter only if the machine crashes, and which may take
// longer than NodeTimeout when other programs write a lot.
var nodeArgs = []string{
	"--appendonly", "yes", "--appendfsync", "no",
	"--maxclients", "2000",
	"--lua-time-limit", "50", // milliseconds until a script counts as long
}

func newNode(locks []string, args ...string) (*node, error) {
	return newNodeBy(redisproc.Start, locks, args...)
}

func newNodeBy(start func(dir string, args ...string) (*redisproc.Server, error), locks []string, args ...string) (*node, error) {
	server, err := start("", slices.Concat(nodeArgs, watchArgs, args)...)
	if err != nil {
		return nil, err
	}
	n := &node{
		server: server, locks: locks,
		should: make(map[history.FaultKind]bool), is: make(map[history.FaultKind]bool), half: make(map[history.FaultKind]bool),
	}
	if n.proxy, err = faultproxy.Listen(server.Addr); err != nil {
		server.Stop()
		return nil, err
	}
	n.connect()
	if n.failure == nil { // a new server cannot have forgotten anything
		n.failure = fresh.Settle(context.Background(), n.admin)
	}
	return n, nil
}

// connect makes the one connection that stays, whatever happens to others: it is made before the
// server wants a password, or has too many clients.
func (n *node) connect() {
	if n.admin != nil {
		_ = n.admin.Close()
	}
	const patience = 5 * time.Second
	n.admin = redis.NewClient(&redis.Options{
		Addr: n.server.Addr, Protocol: 2, DisableIdentity: true, MaxRetries: -1,
		DialTimeout: patience, ReadTimeout: patience, WriteTimeout: patience,
		PoolSize: 1, ConnMaxIdleTime: -1,
	})
	n.failure = n.admin.Ping(context.Background()).Err()
}

func (n *node) close() {
	n.diary.end()
	n.server.Stop()
	n.proxy.Close()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.scriptEnds()
	_ = n.admin.Close()
}

// inject begins or ends a fault. An error means that the server is gone.
func (n *node) inject(f history.Fault, begin bool) (err error) {
	if n.onNetwork(f, begin) {
		return nil
	}
	if f.Kind == history.Churn {
		return nil // a goroutine flushes the scripts again and again
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch f.Kind {
	case history.Kill, history.KillEmpty, history.CutFile, history.FlipFile, history.OldFile, history.PowerCut:
		if begin {
			n.kill()
		} else {
			err = n.restart(f)
		}
	case history.OtherFile:
		n.should[f.Kind] = begin
		if begin {
			n.kill()
			err = n.restart(f)
		}
	case history.Slew:
		err = n.server.SlewClock(inject.During(begin, f.By))
	case history.Hang:
		err = n.hang(begin)
	case history.Flush, history.FlushScripts, history.Evict, history.Deafen:
		if begin && !n.down && !n.hung {
			_ = n.lose(f) // fails if the server is busy
		}
	default:
		n.should[f.Kind] = begin
	}
	n.apply()
	return err
}

// onNetwork injects the faults that are the proxy's.
func (n *node) onNetwork(f history.Fault, begin bool) bool {
	if inject.Cut(n.proxy, f, begin) {
		return true
	}
	switch f.Kind {
	case history.Slow:
		n.proxy.SetDelay(inject.During(begin, f.By))
	case history.Jitter:
		n.proxy.SetJitter(inject.During(begin, f.By))
	case history.Reset:
		if begin {
			n.proxy.ResetAll()
		}
	case history.Forget:
		if begin {
			n.proxy.Forget()
		}
	case history.LoseReplies:
		if begin {
			n.proxy.DropReplies(f.Times)
		}
	case history.TearReplies:
		if begin {
			n.proxy.TearReplies(f.Times)
		}
	default:
		return false
	}
	return true
}

func (n *node) kill() {
	n.server.Kill()
	n.down, n.hung, n.died = true, false, time.Now()
	n.scriptEnds()
}

// restart starts the server after such a fault.
func (n *node) restart(f history.Fault) (err error) {
	switch f.Kind {
	case history.OtherFile:
		other := n.others[f.Times%len(n.others)]
		err = copyFiles(n.server.Dir(), other.server.Dir())
		n.flipped.Store(n.flipped.Load() || other.flipped.Load())
	case history.CutFile, history.FlipFile, history.OldFile, history.PowerCut:
		n.flipped.Store(n.flipped.Load() || f.Kind == history.FlipFile)
		err = damage(n.server.Dir(), f, n.diary.at(n.died.Add(-f.By)))
	}
	if err == nil {
		switch {
		case f.Kind == history.KillEmpty:
			err = n.server.Forget()
		case n.flipped.Load():
			err = startSomehow(n.server)
		default:
			err = n.server.Restart()
		}
	}
	// The settings are those of its arguments again; keys are data.
	keep := f.Kind != history.KillEmpty
	is, half := n.is, n.half
	n.is, n.half = make(map[history.FaultKind]bool), make(map[history.FaultKind]bool)
	for _, data := range []history.FaultKind{history.Foreign, history.OtherFile} {
		n.is[data], n.half[data] = keep && is[data], keep && half[data]
	}
	if n.down = err != nil; !n.down {
		n.connect()
	}
	return err
}

func (n *node) hang(begin bool) (err error) {
	switch {
	case n.down:
	case begin:
		err = n.server.Hang()
		n.hung = err == nil
	case n.hung:
		err = n.server.Resume()
		n.hung = false
	}
	return err
}

// lose deletes data of the server, as an operator would.
func (n *node) lose(f history.Fault) error {
	ctx := context.Background()
	switch f.Kind {
	case history.Flush:
		return n.admin.FlushAll(ctx).Err()
	case history.FlushScripts:
		return n.admin.ScriptFlush(ctx).Err()
	case history.Deafen:
		return n.admin.Do(ctx, "client", "kill", "type", "pubsub").Err()
	}
	keys, err := n.admin.Keys(ctx, "*").Result()
	keys = slices.DeleteFunc(keys, script.Lasting)
	if keys = keys[:min(f.Times, len(keys))]; err != nil || len(keys) == 0 {
		return err
	}
	return n.admin.Del(ctx, keys...).Err()
}

// weigh measures the keys on the node.
func (n *node) weigh() (w history.Weight, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.failure != nil {
		return w, n.failure
	}
	ctx := context.Background()
	keys, err := n.admin.Keys(ctx, "*").Result()
	for _, key := range keys {
		bytes, err := n.admin.MemoryUsage(ctx, key, 0).Result() // including all its members
		if err == nil {
			w.Keys, w.Bytes = w.Keys+1, w.Bytes+int(bytes)
		}
	}
	return w, err
}

// told is what the node keeps of its set, if it says so.
func (n *node) told() wire.Kept {
	text, _ := n.keeps()
	return wire.ParseKept(text)
}

// keeps is the text of that; an error if the node does not answer.
func (n *node) keeps() (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.down || n.hung || n.failure != nil {
		return "", cmp.Or(n.failure, errSilent)
	}
	text, err := n.admin.Get(context.Background(), script.Told).Result()
	if errors.Is(err, redis.Nil) {
		return "", nil
	}
	return text, err
}

var errSilent = errors.New("the server does not run")

// remake makes the node a member of a restored set, unless it keeps something else than before by then.
func (n *node) remake(told wire.Kept, before string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.down || n.hung || n.failure != nil {
		return false
	}
	is, err := fresh.Restore(context.Background(), n.admin, told, before)
	return is && err == nil
}

// keys lists the keys on the node, with the tokens; a key with several holders is listed for each of them.
func (n *node) keys() (map[string]string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.apply() // again, since a setting may have had to wait
	if n.failure != nil {
		return nil, n.failure
	}
	all := make(map[string]string)
	if n.flipped.Load() {
		return all, nil
	}
	ctx := context.Background()
	keys, err := n.admin.Keys(ctx, "*").Result()
	for _, key := range slices.DeleteFunc(keys, script.Lasting) {
		token, err := n.admin.Get(ctx, key).Result()
		set, notSet := n.admin.ZRangeWithScores(ctx, key, 0, -1).Result()
		switch {
		case errors.Is(err, redis.Nil): // it has expired just now
		case err != nil && notSet == nil:
			for _, one := range set {
				if token := fmt.Sprint(one.Member); drive.Counts(one.Score, time.Now()) {
					all[key+" "+token] = token
				}
			}
		case err != nil:
			all[key] = err.Error()
		default:
			all[key] = token
		}
	}
	return all, err
}
