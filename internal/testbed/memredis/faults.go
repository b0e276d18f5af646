package memredis

import (
	"bufio"
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/quorumlock/redlock/internal/script"
)

// A Refusal is what a node says instead of doing what it is told.
type Refusal struct {
	Error  string
	Only   []string // these commands, also those of scripts; nil: all that a client sends
	Except []string
	HangUp bool // and closes the connection
}

// Refuse has the node refuse from now on, over restarts too; nil: no more.
func (e *Engine) Refuse(r *Refusal) { e.refusal.Store(r) }

// refuses reports whether it has refused a command. All scripts of an engine are
// atomic, so one that was let in is not refused its commands half way, unless it
// is they that are refused.
func (e *Engine) refuses(peer *server.Peer, cmd string) bool {
	r := e.refusal.Load()
	switch {
	case r == nil || slices.Contains(r.Except, cmd):
		return false
	case r.Only == nil && e.scripts.Load() > 0 && !isScript(cmd):
		return false
	case r.Only != nil && !slices.Contains(r.Only, cmd):
		return false
	}
	peer.WriteError(r.Error)
	if r.HangUp {
		peer.Close()
	}
	return true
}

// Repeat has the next n scripts run twice, the second time at once: what a client
// does that sends a request again. The second time is the one that is answered.
func (e *Engine) Repeat(n int) { e.repeat.Store(int64(n)) }

// RepeatLate is the same, but the second time comes later, and is not answered.
func (e *Engine) RepeatLate(n int, after func() time.Duration) {
	e.late.Store(&lateness{after: after})
	e.repeatLate.Store(int64(n))
}

type lateness struct{ after func() time.Duration }

// Step sets the node's clock forward by d, or back: its keys have so much less to
// live, or more. What has expired by now stays expired.
func (e *Engine) Step(d time.Duration) {
	e.mini.DB(0) // has it look at the clock
	if d < 0 {
		e.mini.FastForward(d) // it does not count back by itself
	}
	if before := e.ahead.Load(); before != nil {
		d += *before
	}
	e.ahead.Store(&d)
	e.tell()
}

// tell has miniredis know what time it is, if its clock is not the system's.
func (e *Engine) tell() {
	if ahead := e.ahead.Load(); ahead != nil {
		e.mini.SetTime(time.Now().Add(*ahead))
	}
}

// Evict drops the first n locks.
func (e *Engine) Evict(n int) {
	keys := e.Keys()
	for _, key := range keys[:min(n, len(keys))] {
		e.mini.Del(key)
	}
}

// Put has somebody else's hash under a key, unless there is something already.
func (e *Engine) Put(key string) { e.do("HSET", key, "somebody", "else's") }

// Take takes away what Put has put there.
func (e *Engine) Take(key string) {
	if e.mini.DB(0).Type(key) == "hash" {
		e.mini.Del(key)
	}
}

// Eval runs a script with one number for a reply, whatever the node refuses, and returns the reply; -1: an error.
func (e *Engine) Eval(script string, keys []string, args ...string) int {
	said := e.replyTo(nil, append(append([]string{"EVAL", script, strconv.Itoa(len(keys))}, keys...), args...)...)
	n, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(said, ":")))
	if err != nil {
		return -1
	}
	return n
}

// FlushScripts drops the scripts, as SCRIPT FLUSH does.
func (e *Engine) FlushScripts() { e.replyTo(nil, "SCRIPT", "FLUSH") }

// Values are the keys of the first database with what is there, if it is a
// string, also of a stopped engine.
func (e *Engine) Values() map[string]string {
	values := make(map[string]string)
	for _, key := range e.Keys() {
		values[key], _ = e.mini.DB(0).Get(key)
	}
	return values
}

// own is the name by which we know our own requests, which are refused nothing.
// No client can have a name with an end of line in it.
const own = "\nour own"

// do executes a command of our own, also in a stopped engine, and nobody gets the
// reply.
func (e *Engine) do(args ...string) { e.dispatch(nil, args) }

// hook is run before each command. It says whether it has dealt with it.
func (e *Engine) hook(peer *server.Peer, cmd string, args ...string) bool {
	switch {
	case peer.ClientName == own:
		return false
	case isScript(cmd):
		e.tell()
		return e.script(peer, append([]string{cmd}, args...))
	case e.refuses(peer, cmd):
		return true
	case cmd == "DELEX" && !e.newer.Load():
		peer.WriteError("ERR unknown command 'DELEX'")
		return true
	case cmd == "SCRIPT":
		peer.WriteRaw(e.replyTo(peer, append([]string{cmd}, args...)...))
		return true
	case e.scripts.Load() == 0: // one that runs has miniredis locked, and its own commands come here
		e.tell()
	}
	return e.Info.Hook(peer, cmd, args...)
}

func isScript(cmd string) bool { return cmd == "EVAL" || cmd == "EVALSHA" }

// checked has the code that miniredis has parsed in this process, for any engine.
var checked sync.Map

// replyTo carries out a command that is about scripts, for a peer or nobody. miniredis
// parses a script each time that it is loaded, and compiles each text once. Both would be
// most of what a node costs, since some of the library's scripts name their server in a
// first line of comment: so the engine keeps the scripts itself, and runs them without
// that line's words. All that may be done before AUTH, and in a transaction.
func (e *Engine) replyTo(peer *server.Peer, args ...string) string {
	e.loading.Lock()
	defer e.loading.Unlock()
	switch {
	case len(args) == 3 && strings.EqualFold(args[1], "LOAD"):
		code := anonymous(args[2])
		if _, ok := checked.Load(code); !ok {
			if reply := e.dispatch(peer, args); !strings.HasPrefix(reply, "$") {
				return reply
			}
			checked.Store(code, nil)
		}
		hash, ok := e.hashes[args[2]]
		if !ok {
			hash = script.New(args[2]).Hash
			e.hashes[args[2]] = hash
			e.loaded[hash] = code
		}
		return fmt.Sprintf("$%d\r\n%s\r\n", len(hash), hash)
	case len(args) > 2 && strings.EqualFold(args[1], "EXISTS"):
		return e.exist(peer, args[2:])
	case len(args) > 1 && strings.EqualFold(args[1], "FLUSH"):
		clear(e.loaded)
		clear(e.hashes)
	}
	return e.dispatch(peer, args)
}

// exist says which of the scripts there are. Miniredis is asked for those that the engine does not
// keep: it has what came by EVAL. The caller holds e.loading.
func (e *Engine) exist(peer *server.Peer, hashes []string) string {
	reply := fmt.Sprintf("*%d\r\n", len(hashes))
	for _, hash := range hashes {
		if _, ok := e.loaded[strings.ToLower(hash)]; ok {
			reply += ":1\r\n"
			continue
		}
		one := e.dispatch(peer, []string{"SCRIPT", "EXISTS", hash})
		n, ok := strings.CutPrefix(one, "*1\r\n")
		if !ok {
			return one
		}
		reply += n
	}
	return reply
}

// anonymous is a script without what a comment in its first line says. The line stays, for
// errors give line numbers.
func anonymous(source string) string {
	if first, rest, ok := strings.Cut(source, "\n"); ok && strings.HasPrefix(first, "-- ") {
		return "--\n" + rest
	}
	return source
}

// named gives an EVALSHA of a script that the engine keeps as the EVAL of its code.
func (e *Engine) named(args []string) []string {
	if args[0] != "EVALSHA" || len(args) < 2 {
		return args
	}
	e.loading.Lock()
	defer e.loading.Unlock()
	if code, ok := e.loaded[strings.ToLower(args[1])]; ok {
		return append([]string{"EVAL", code}, args[2:]...)
	}
	return args
}

// dispatch has miniredis carry out a command, and gives what it replies.
func (e *Engine) dispatch(peer *server.Peer, args []string) string {
	var reply bytes.Buffer
	inner := server.NewPeer(bufio.NewWriter(&reply))
	inner.ClientName = own
	if peer != nil {
		inner.Ctx, inner.Resp3 = peer.Ctx, peer.Resp3
		defer func() { peer.Ctx = inner.Ctx }()
	}
	e.srv.Load().Dispatch(inner, args)
	inner.Flush()
	return reply.String()
}

// script runs a script, and mends the reply: an error of a command in it is that
// command's error, as a real server says it, and a node that was killed meanwhile
// says nothing any more.
func (e *Engine) script(peer *server.Peer, args []string) bool {
	e.scripts.Add(1)
	defer e.scripts.Add(-1)
	if e.refuses(peer, args[0]) {
		return true
	}
	carried := e.named(args)
	if e.repeat.Load() > 0 && e.repeat.Add(-1) >= 0 {
		e.do(carried...)
	}
	reply := e.dispatch(peer, carried)
	if e.repeatLate.Load() > 0 && e.repeatLate.Add(-1) >= 0 {
		time.AfterFunc(e.late.Load().after(), func() { e.again(args) })
	}
	if !e.Running() {
		peer.Close()
		return true
	}
	peer.WriteRaw(mend(reply, args))
	return true
}

// again runs a script once more, if the node is up then.
func (e *Engine) again(args []string) {
	e.scripts.Add(1)
	defer e.scripts.Add(-1)
	if e.Running() {
		e.do(e.named(args)...)
	}
}

// scriptError is how miniredis wraps the error of a command in a script.
var scriptError = regexp.MustCompile(`^-ERR Error compiling script \(new function\): :([0-9]+): ([A-Z]+ .*?) stack traceback: .*\r\n$`)

func mend(reply string, args []string) string {
	if !strings.HasPrefix(reply, "-") || len(args) < 2 {
		return reply
	}
	found := scriptError.FindStringSubmatch(reply)
	if found == nil {
		return reply
	}
	hash := args[1]
	if args[0] == "EVAL" {
		hash = script.New(args[1]).Hash
	}
	return fmt.Sprintf("-%s script: %s, on @user_script:%s.\r\n", found[2], hash, found[1])
}
