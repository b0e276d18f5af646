package miniarena

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/chaos/internal/scenario"
	"github.com/quorumlock/redlock/internal/script"
)

// TestFaultsHaveTheirEffect: a harness whose faults do nothing finds nothing.
func TestFaultsHaveTheirEffect(t *testing.T) {
	table := map[history.FaultKind]func(*bench){
		history.Kill: func(b *bench) {
			b.inject(history.Fault{Kind: history.Kill}, true)
			v, err := b.acquire("free")
			if !errors.Is(err, syscall.ECONNREFUSED) {
				b.Errorf("a killed node says %v, %v", v, err)
			}
			b.inject(history.Fault{Kind: history.Kill}, false)
			b.has("mine", "theirs")
			v, err = b.acquire("free")
			b.says("after the restart", v, err, "NOSCRIPT")
		},
		history.Boot: func(b *bench) {
			b.inject(history.Fault{Kind: history.Boot, By: -time.Minute}, true)
			b.has()
			b.client.Set(b.Context(), "ours", "token", time.Second)
			b.has("ours")
			b.inject(history.Fault{Kind: history.Boot, By: -time.Minute}, false)
			b.has() // it is a minute later
		},
		history.KillEmpty: func(b *bench) {
			b.inject(history.Fault{Kind: history.KillEmpty}, true)
			b.inject(history.Fault{Kind: history.KillEmpty}, false)
			b.has()
		},
		history.Hang:        cutting(history.Hang, false, true),
		history.Cut:         cutting(history.Cut, false, true),
		history.CutRequests: cutting(history.CutRequests, false, true),
		history.CutReplies:  cutting(history.CutReplies, true, true),
		history.Part:        cutting(history.Part, false, false),
		history.Slow: func(b *bench) {
			b.inject(history.Fault{Kind: history.Slow, By: 300 * time.Millisecond}, true)
			b.took(300*time.Millisecond, 300*time.Millisecond, func() { b.answersOnce() })
			b.inject(history.Fault{Kind: history.Slow, By: 300 * time.Millisecond}, false)
			b.took(0, 0, func() { b.answersOnce() })
		},
		history.Jitter: func(b *bench) {
			b.inject(history.Fault{Kind: history.Jitter, By: 300 * time.Millisecond}, true)
			seen := make(map[time.Duration]bool)
			for range 10 {
				begin := time.Now()
				b.took(1, 600*time.Millisecond, func() { b.answersOnce() })
				seen[time.Since(begin)] = true
			}
			if len(seen) < 10 {
				b.Errorf("ten round trips took only %d different times", len(seen))
			}
			b.inject(history.Fault{Kind: history.Jitter, By: 300 * time.Millisecond}, false)
			b.took(0, 0, func() { b.answersOnce() })
		},
		history.Reset: func(b *bench) {
			conn, err := b.node.Dial(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			b.inject(history.Fault{Kind: history.Reset}, true)
			if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
				b.Errorf("a connection from before: %v", err)
			}
			b.answers("")
		},
		history.Forget: func(b *bench) {
			b.answersOnce() // there is a connection
			b.inject(history.Fault{Kind: history.Forget}, true)
			b.took(time.Second, time.Second, func() {
				if v, err := b.acquire("free"); !isTimeout(err) { // neither side was told
					b.Errorf("over a connection from before: %v, %v", v, err)
				}
			})
			b.has("mine", "theirs")
			b.took(0, 0, func() { b.answers("") }) // over a new one
		},
		history.LoseReplies: func(b *bench) {
			b.inject(history.Fault{Kind: history.LoseReplies, Times: 1}, true)
			if v, err := b.acquire("free"); !errors.Is(err, syscall.ECONNRESET) {
				b.Errorf("the reply that is lost: %v, %v", v, err)
			}
			b.has("free", "mine", "theirs")
			b.answers("")
		},
		history.TearReplies: func(b *bench) {
			b.node.Path.SetDelay(time.Millisecond) // so that all replies are on their way at once
			b.answersOnce()
			b.inject(history.Fault{Kind: history.TearReplies, Times: 1}, true)
			var replies []*redis.Cmd
			_, err := b.client.Pipelined(b.Context(), func(p redis.Pipeliner) error {
				for i := range 6 {
					key := fmt.Sprint(i)
					replies = append(replies, p.EvalSha(b.Context(), acquire.Hash, []string{key}, "me", 30000, 0, 0, "", 0, "", 0, "x", 0, script.Bucket(key)))
				}
				return nil
			})
			if !errors.Is(err, syscall.ECONNRESET) {
				b.Errorf("the pipeline: %v", err)
			}
			for i, r := range replies { // go-redis has the error in all of them
				if granted(r.Val()) != (i < 3) {
					b.Errorf("reply %d: %v, %v", i, r.Val(), r.Err())
				}
			}
			b.has("0", "1", "2", "3", "4", "5", "mine", "theirs")
		},
		history.Repeat: func(b *bench) {
			b.inject(history.Fault{Kind: history.Repeat, Times: 2}, true)
			b.counts(2, 4, 5)
		},
		history.RepeatLate: func(b *bench) {
			b.inject(history.Fault{Kind: history.RepeatLate, Times: 2, By: time.Second}, true)
			b.counts(1, 2)
			time.Sleep(time.Second)
			b.counts(5)
		},
		history.Flush: func(b *bench) {
			b.inject(history.Fault{Kind: history.Flush}, true)
			b.has()
		},
		history.Evict: func(b *bench) {
			b.inject(history.Fault{Kind: history.Evict, Times: 1}, true)
			b.has("theirs")
			b.inject(history.Fault{Kind: history.Evict, Times: 3}, true)
			b.has()
		},
		history.Full: func(b *bench) {
			b.inject(history.Fault{Kind: history.Full}, true)
			v, err := b.acquire("free")
			b.says("acquire", v, err, "OOM ")
			v, err = b.acquire("theirs")
			b.says("acquire theirs", v, err, "") // held: nothing had to be written
			v, err = b.extend("mine")
			b.says("extend", v, err, "")
			v, err = b.release("mine")
			b.says("release", v, err, "")
			b.has("theirs")
			b.inject(history.Fault{Kind: history.Full}, false)
			b.answers("")
		},
		history.ReadOnly: func(b *bench) {
			b.inject(history.Fault{Kind: history.ReadOnly}, true)
			v, err := b.acquire("free")
			b.says("acquire", v, err, "READONLY ")
			v, err = b.extend("mine")
			b.says("extend", v, err, "READONLY ")
			v, err = b.release("mine")
			b.says("release", v, err, "READONLY ")
			v, err = b.release("free")
			b.says("release what is not there", v, err, "")
			b.has("mine", "theirs")
			b.inject(history.Fault{Kind: history.ReadOnly}, false)
			b.answers("")
		},
		history.Loading: refusing(history.Loading, "LOADING "),
		history.Locked:  refusing(history.Locked, "NOAUTH "),
		history.Crowded: func(b *bench) {
			b.inject(history.Fault{Kind: history.Crowded}, true)
			v, err := b.acquire("free")
			b.says("acquire", v, err, "ERR max number of clients")
			synctest.Wait() // it closes the connection
			v, err = b.acquire("free")
			// go-redis goes on with the handshake after an error, and notices when it reads or writes.
			if !errors.Is(err, io.EOF) && !errors.Is(err, syscall.EPIPE) {
				b.Errorf("handshake: %v, %v", v, err)
			}
			b.inject(history.Fault{Kind: history.Crowded}, false)
			b.answers("")
		},
		history.Busy: refusing(history.Busy, "BUSY "),
		history.FlushScripts: func(b *bench) {
			b.inject(history.Fault{Kind: history.FlushScripts}, true)
			b.answers("NOSCRIPT ")
		},
		history.Foreign: func(b *bench) {
			b.inject(history.Fault{Kind: history.Foreign}, true)
			v, err := b.acquire("free")
			b.says("acquire", v, err, "WRONGTYPE ")
			v, err = b.extend("mine")
			b.says("a lock that was there", v, err, "")
			b.inject(history.Fault{Kind: history.Foreign}, false)
			b.has("mine", "theirs")
		},
		history.Values: func(b *bench) {
			f := history.Fault{Kind: history.Values, At: 1} // the first kind is for "mine", which is there
			b.inject(f, true)
			b.has("free", "mine", "theirs")
			for key, want := range map[string]string{"mine": "string", "mine:queue": "zset", "free": "hash", "free:queue": "string"} {
				if is := b.client.Type(b.Context(), key).Val(); is != want {
					b.Errorf("a %s is at %q, want a %s", is, key, want)
				}
			}
			v, err := b.acquire("free")
			b.says("acquire", v, err, "WRONGTYPE ")
			v, err = b.extend("mine")
			b.says("a lock that was there", v, err, "")
			b.inject(f, false)
			b.has("mine", "theirs")
			if err := b.node.strange(); err != nil {
				b.Errorf("nobody has changed a value: %v", err)
			}
			b.answers("")
			b.inject(f, true)
			b.client.Del(b.Context(), "mine:queue")
			b.inject(f, false)
			if err := b.node.strange(); err == nil || !strings.Contains(err.Error(), "changed at mine:queue") {
				b.Errorf("a value was deleted: %v", err)
			}
		},
		history.Step: func(b *bench) {
			time.Sleep(30 * time.Second)
			b.inject(history.Fault{Kind: history.Step, By: -time.Minute}, true)
			time.Sleep(89 * time.Second)
			b.has("mine", "theirs")
			b.answersOnce()
			b.inject(history.Fault{Kind: history.Step, By: 2 * time.Second}, true)
			b.has()
			if v, err := b.acquire("theirs"); !granted(v) {
				b.Errorf("a key that has expired early: %v, %v", v, err)
			}
		},
		history.Clock: func(b *bench) {
			b.inject(history.Fault{Kind: history.Clock, By: -24 * time.Hour}, true)
			b.has("mine", "theirs")
			b.inject(history.Fault{Kind: history.Clock, By: -24 * time.Hour}, false)
			b.has("mine", "theirs")
			b.inject(history.Fault{Kind: history.Clock, By: 24 * time.Hour}, true)
			b.has()
			b.inject(history.Fault{Kind: history.Clock, By: 24 * time.Hour}, false)
			b.has()
		},
		history.Mute:   mute,
		history.Deafen: deafen,
	}
	for _, s := range scenario.All {
		for _, kind := range s.Troubles {
			if !kind.OnClient() && table[kind] == nil && !slices.Contains(Cannot, kind) {
				t.Errorf("what %q does is not in the table", kind)
				table[kind] = func(*bench) {}
			}
		}
	}
	for kind, try := range table {
		t.Run(string(kind), func(t *testing.T) { onBench(t, try) })
	}
}

func TestUnknownFault(t *testing.T) {
	onBench(t, func(b *bench) {
		for _, kind := range []history.FaultKind{history.Pause, "nonsense"} {
			if b.node.inject(history.Fault{Kind: kind}, true, nil) {
				t.Errorf("%q is known to a node", kind)
			}
		}
	})
}
