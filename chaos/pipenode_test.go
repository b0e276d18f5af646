package chaos

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/internal/script"
)

// TestTroublesHaveTheirEffect: a harness whose faults do nothing finds nothing.
func TestTroublesHaveTheirEffect(t *testing.T) {
	table := map[Trouble]func(*bench){
		Kill: func(b *bench) {
			b.strike(Fault{Trouble: Kill}, true)
			v, err := b.acquire("free")
			if !errors.Is(err, syscall.ECONNREFUSED) {
				b.Errorf("a killed node says %v, %v", v, err)
			}
			b.strike(Fault{Trouble: Kill}, false)
			b.has("mine", "theirs")
			v, err = b.acquire("free")
			b.says("after the restart", v, err, "NOSCRIPT")
		},
		Boot: func(b *bench) {
			b.strike(Fault{Trouble: Boot, By: -time.Minute}, true)
			b.has()
			b.client.Set(b.Context(), "ours", "token", time.Second)
			b.has("ours")
			b.strike(Fault{Trouble: Boot, By: -time.Minute}, false)
			b.has() // it is a minute later
		},
		KillEmpty: func(b *bench) {
			b.strike(Fault{Trouble: KillEmpty}, true)
			b.strike(Fault{Trouble: KillEmpty}, false)
			b.has()
		},
		Hang:        cutting(Hang, false, true),
		Cut:         cutting(Cut, false, true),
		CutRequests: cutting(CutRequests, false, true),
		CutReplies:  cutting(CutReplies, true, true),
		Part:        cutting(Part, false, false),
		Slow: func(b *bench) {
			b.strike(Fault{Trouble: Slow, By: 300 * time.Millisecond}, true)
			b.took(300*time.Millisecond, 300*time.Millisecond, func() { b.answersOnce() })
			b.strike(Fault{Trouble: Slow, By: 300 * time.Millisecond}, false)
			b.took(0, 0, func() { b.answersOnce() })
		},
		Jitter: func(b *bench) {
			b.strike(Fault{Trouble: Jitter, By: 300 * time.Millisecond}, true)
			seen := make(map[time.Duration]bool)
			for range 10 {
				begin := time.Now()
				b.took(1, 600*time.Millisecond, func() { b.answersOnce() })
				seen[time.Since(begin)] = true
			}
			if len(seen) < 10 {
				b.Errorf("ten round trips took only %d different times", len(seen))
			}
			b.strike(Fault{Trouble: Jitter, By: 300 * time.Millisecond}, false)
			b.took(0, 0, func() { b.answersOnce() })
		},
		Reset: func(b *bench) {
			conn, err := b.node.Dial(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			b.strike(Fault{Trouble: Reset}, true)
			if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
				b.Errorf("a connection from before: %v", err)
			}
			b.answers("")
		},
		LoseReplies: func(b *bench) {
			b.strike(Fault{Trouble: LoseReplies, Times: 1}, true)
			if v, err := b.acquire("free"); !errors.Is(err, syscall.ECONNRESET) {
				b.Errorf("the reply that is lost: %v, %v", v, err)
			}
			b.has("free", "mine", "theirs")
			b.answers("")
		},
		TearReplies: func(b *bench) {
			b.node.Path.SetDelay(time.Millisecond) // so that all replies are on their way at once
			b.answersOnce()
			b.strike(Fault{Trouble: TearReplies, Times: 1}, true)
			var replies []*redis.Cmd
			_, err := b.client.Pipelined(b.Context(), func(p redis.Pipeliner) error {
				for i := range 6 {
					key := fmt.Sprint(i)
					replies = append(replies, p.EvalSha(b.Context(), acquire.Hash, []string{key}, "me", 30000, 0, 0, "", 0, "", 0, "", "x", 0, 0, script.Bucket(key)))
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
		Repeat: func(b *bench) {
			b.strike(Fault{Trouble: Repeat, Times: 2}, true)
			b.counts(2, 4, 5)
		},
		RepeatLate: func(b *bench) {
			b.strike(Fault{Trouble: RepeatLate, Times: 2, By: time.Second}, true)
			b.counts(1, 2)
			time.Sleep(time.Second)
			b.counts(5)
		},
		Flush: func(b *bench) {
			b.strike(Fault{Trouble: Flush}, true)
			b.has()
		},
		Evict: func(b *bench) {
			b.strike(Fault{Trouble: Evict, Times: 1}, true)
			b.has("theirs")
			b.strike(Fault{Trouble: Evict, Times: 3}, true)
			b.has()
		},
		Full: func(b *bench) {
			b.strike(Fault{Trouble: Full}, true)
			v, err := b.acquire("free")
			b.says("acquire", v, err, "OOM ")
			v, err = b.acquire("theirs")
			b.says("acquire theirs", v, err, "") // held: nothing had to be written
			v, err = b.extend("mine")
			b.says("extend", v, err, "")
			v, err = b.release("mine")
			b.says("release", v, err, "")
			b.has("theirs")
			b.strike(Fault{Trouble: Full}, false)
			b.answers("")
		},
		ReadOnly: func(b *bench) {
			b.strike(Fault{Trouble: ReadOnly}, true)
			v, err := b.acquire("free")
			b.says("acquire", v, err, "READONLY ")
			v, err = b.extend("mine")
			b.says("extend", v, err, "READONLY ")
			v, err = b.release("mine")
			b.says("release", v, err, "READONLY ")
			v, err = b.release("free")
			b.says("release what is not there", v, err, "")
			b.has("mine", "theirs")
			b.strike(Fault{Trouble: ReadOnly}, false)
			b.answers("")
		},
		Loading: refusing(Loading, "LOADING "),
		Locked:  refusing(Locked, "NOAUTH "),
		Crowded: func(b *bench) {
			b.strike(Fault{Trouble: Crowded}, true)
			v, err := b.acquire("free")
			b.says("acquire", v, err, "ERR max number of clients")
			synctest.Wait() // it hangs up
			v, err = b.acquire("free")
			// go-redis greets on after an error, and finds out by reading or by writing.
			if !errors.Is(err, io.EOF) && !errors.Is(err, syscall.EPIPE) {
				b.Errorf("greeting: %v, %v", v, err)
			}
			b.strike(Fault{Trouble: Crowded}, false)
			b.answers("")
		},
		Busy: refusing(Busy, "BUSY "),
		FlushScripts: func(b *bench) {
			b.strike(Fault{Trouble: FlushScripts}, true)
			b.answers("NOSCRIPT ")
		},
		Foreign: func(b *bench) {
			b.strike(Fault{Trouble: Foreign}, true)
			v, err := b.acquire("free")
			b.says("acquire", v, err, "WRONGTYPE ")
			v, err = b.extend("mine")
			b.says("a lock that was there", v, err, "")
			b.strike(Fault{Trouble: Foreign}, false)
			b.has("mine", "theirs")
		},
		Step: func(b *bench) {
			time.Sleep(30 * time.Second)
			b.strike(Fault{Trouble: Step, By: -time.Minute}, true)
			time.Sleep(89 * time.Second)
			b.has("mine", "theirs")
			b.answersOnce()
			b.strike(Fault{Trouble: Step, By: 2 * time.Second}, true)
			b.has()
			if v, err := b.acquire("theirs"); !granted(v) {
				b.Errorf("a key that has expired early: %v, %v", v, err)
			}
		},
		Clock: func(b *bench) {
			b.strike(Fault{Trouble: Clock, By: -day}, true)
			b.has("mine", "theirs")
			b.strike(Fault{Trouble: Clock, By: -day}, false)
			b.has("mine", "theirs")
			b.strike(Fault{Trouble: Clock, By: day}, true)
			b.has()
			b.strike(Fault{Trouble: Clock, By: day}, false)
			b.has()
		},
		Mute:   mute,
		Deafen: deafen,
	}
	for _, s := range Scenarios {
		for _, trouble := range s.Troubles {
			if !trouble.onClient() && table[trouble] == nil && !slices.Contains(Miniredis.cannot, trouble) {
				t.Errorf("what %q does is not in the table", trouble)
				table[trouble] = func(*bench) {}
			}
		}
	}
	for trouble, try := range table {
		t.Run(string(trouble), func(t *testing.T) { onBench(t, try) })
	}
}

func TestUnknownTrouble(t *testing.T) {
	onBench(t, func(b *bench) {
		for _, trouble := range []Trouble{Pause, "nonsense"} {
			if b.node.strike(Fault{Trouble: trouble}, true, nil) {
				t.Errorf("%q is known to a node", trouble)
			}
		}
	})
}
