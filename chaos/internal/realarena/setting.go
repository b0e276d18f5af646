package realarena

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/internal/fresh"
)

// settings has the kinds of fault that need commands to the server. A server that is down, stopped
// or busy executes none. So the wanted state is recorded, and apply establishes it whenever
// something has changed that may make it possible. Of these, only Foreign and OtherFile may coincide with
// others, which may prevent them.
var settings = []history.FaultKind{history.Busy, history.Full, history.ReadOnly, history.Locked, history.Crowded, history.Mute, history.Foreign, history.DiskFull, history.OtherFile}

// apply brings the server into the wanted state, as far as it executes commands.
func (n *node) apply() {
	if n.down || n.hung {
		return
	}
	n.failure = nil
	for _, t := range settings {
		if n.should[t] == n.is[t] && !n.half[t] {
			continue
		}
		err := n.set(t, n.should[t])
		if n.half[t] = err != nil; n.half[t] {
			n.failure = fmt.Errorf("%s: %w", t, err)
			continue
		}
		n.is[t] = n.should[t]
	}
}

func (n *node) set(t history.FaultKind, begin bool) error {
	switch t {
	case history.Busy:
		switch {
		case !begin:
			return n.killScript()
		case n.script == nil:
			n.scriptBegins()
		}
		return nil
	case history.DiskFull:
		return fill(n.server, begin)
	case history.OtherFile:
		if begin {
			return nil // it has the file since it was started
		}
		_, err := fresh.Forget(context.Background(), n.admin)
		return err
	case history.Full:
		return n.config("maxmemory", begin, "1", "0")
	case history.ReadOnly:
		return n.readOnly(begin)
	case history.Locked:
		return errors.Join(n.config("requirepass", begin, "secret", ""), n.hangUp(begin))
	case history.Mute:
		rule := "+publish"
		if begin {
			rule = "-publish"
		}
		return n.admin.Do(context.Background(), "acl", "setuser", "default", rule).Err()
	case history.Crowded:
		return errors.Join(n.config("maxclients", begin, "1", "2000"), n.hangUp(begin))
	}
	return n.foreign(begin)
}

func (n *node) config(name string, begin bool, bad, good string) error {
	value := good
	if begin {
		value = bad
	}
	return n.admin.ConfigSet(context.Background(), name, value).Err()
}

// hangUp ends the existing connections. They are authenticated, and within the limit of clients:
// without this only later connections would have the fault.
func (n *node) hangUp(begin bool) error {
	if !begin {
		return nil
	}
	return n.admin.Do(context.Background(), "client", "kill", "type", "normal", "skipme", "yes").Err()
}

// readOnly makes the server unable to save, so that it refuses to write: a directory is in the
// place of its file. (A replica would be rejected as soon as a client connects; and with
// min-replicas-to-write the error would be one that no client knows.)
func (n *node) readOnly(begin bool) error {
	ctx := context.Background()
	if err := n.config("save", begin, "86400 1000000000", ""); err != nil || !begin {
		return err
	}
	if err := os.MkdirAll(filepath.Join(n.server.Dir(), "dump.rdb"), 0o755); err != nil {
		return err
	}
	if err := n.admin.BgSave(ctx).Err(); err != nil {
		return err
	}
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		about, err := n.admin.Info(ctx, "persistence").Result()
		if err != nil || strings.Contains(about, "rdb_last_bgsave_status:err") {
			return err
		}
	}
	return errors.New("it could save")
}

// foreign puts hashes where locks may be, but does not replace a lock: that would lose the lock,
// which is another kind of fault.
func (n *node) foreign(begin bool) error {
	ctx := context.Background()
	for _, key := range n.locks {
		kind, err := n.admin.Type(ctx, key).Result()
		switch {
		case err != nil:
		case begin && kind == "none":
			err = n.admin.HSet(ctx, key, "somebody", "else").Err()
			if redis.HasErrorPrefix(err, "WRONGTYPE") { // a lock was faster
				err = nil
			}
		case !begin && kind == "hash":
			err = n.admin.Del(ctx, key).Err()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// scriptBegins makes another client run a script that does not end.
func (n *node) scriptBegins() {
	ended := make(chan struct{})
	n.script = ended
	go func() {
		defer close(ended)
		other := redis.NewClient(&redis.Options{Addr: n.server.Addr, Protocol: 2, DisableIdentity: true, MaxRetries: -1, ReadTimeout: -1})
		defer other.Close()
		_ = other.Eval(context.Background(), "while true do end", nil).Err() // killed, one way or another
	}()
}

// scriptEnds waits for its end: the script was killed, or the server.
func (n *node) scriptEnds() {
	if n.script != nil {
		<-n.script
		n.script = nil
	}
}

func (n *node) killScript() error {
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		select {
		case <-n.script:
			n.script = nil
			return nil
		default:
		}
		_ = n.admin.ScriptKill(context.Background()).Err() // it may not have begun
	}
	return errors.New("the script goes on")
}
