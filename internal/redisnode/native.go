package redisnode

import (
	"context"
	"errors"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/resp"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/wire"
	"github.com/redis/go-redis/v9"
)

// natives says which commands a server has that compare the token themselves; see wire.NativeAnswer.
type natives struct {
	extend bool   // SET has IFEQ
	remove string // "delex", "delifeq"; "": neither
}

// does reports whether q, an extension or a release, needs no script: it allows that (q.Native), and the server can.
func (n natives) does(q *lane.Request) bool {
	return q.Native && (q.Op == wire.Extend && n.extend || q.Op == wire.Release && n.remove != "")
}

// A nativeProbe finds out which of these commands a server has by trying them, on a key that is never there. Versions
// do not say what a proxy or an ACL lets through. A server that takes no writes now gets scripts until it reconnects.
type nativeProbe struct{ ifeq, exists, delex, delifeq *redis.Cmd }

func probeNatives(ctx context.Context, p redis.Pipeliner) nativeProbe {
	return nativeProbe{
		p.Do(ctx, "set", script.ProbeKey, "none", "ifeq", "no token", "px", 1),
		p.Do(ctx, "script", "exists", script.Extend.Hash), // the trailer has this
		p.Do(ctx, "delex", script.ProbeKey, "ifeq", "no token"),
		p.Do(ctx, "delifeq", script.ProbeKey, "no token"),
	}
}

// natives returns which of the commands the server has, by the replies to p, which tried each on a key that is not there.
// One that replies anything else than that there is none (NOPERM, say) counts as missing; so does SET without SCRIPT EXISTS.
func (p nativeProbe) natives() natives {
	n := natives{extend: errors.Is(p.ifeq.Err(), redis.Nil) && p.exists.Err() == nil}
	for name, c := range map[string]*redis.Cmd{"delex": p.delex, "delifeq": p.delifeq} {
		if c.Err() == nil && c.Val() == int64(0) {
			n.remove = name
		}
	}
	return n
}

// write writes the commands of q, an extension or a release without a script (wire.NativeAnswer), up to the trailer.
func (n natives) write(w *resp.Writer, q *lane.Request) {
	c := q.Claim
	key := c.Keys[0]
	switch {
	case q.Op == wire.Extend:
		w.Begin("set").String(key).String(c.Token).String("ifeq").String(c.Token).String("px").Int(c.Millis).End()
		w.Begin("exists").String(script.Broken + c.Token).End()
		return
	case n.remove == "delex":
		w.Begin("delex").String(key).String("ifeq").String(c.Token).End()
	default:
		w.Begin("delifeq").String(key).String(c.Token).End()
	}
	w.Begin("exists").String(key + script.QueueSuffix).End()
}

// readNative reads the replies to the commands of natives.write for op. An error: the connection failed.
func readNative(in *resp.Reader, op wire.Op) (a wire.NativeAnswer, err error) {
	r := replies{in: in}
	if op == wire.Extend {
		a.Done, a.Broken = r.text(okay) == okay, r.number()
	} else {
		a.Done, a.Queues = r.number() == 1, r.number()
	}
	a.Err = r.failed()
	return a, r.broken
}
