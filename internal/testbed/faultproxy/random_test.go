package faultproxy_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/testbed/faultproxy"
)

// Under any faults, a client receives nothing but the beginning of what it has sent, and a path can always
// be closed.
func TestRandomFaults(t *testing.T) {
	for seed := range uint64(20) {
		onPath(t, func(t *testing.T, p *faultproxy.Path, _ *server, dial func() *client) {
			rng := rand.New(rand.NewPCG(seed, 0))
			var clients sync.WaitGroup
			for range 4 {
				c := dial()
				var sent bytes.Buffer
				for i := range 50 {
					fmt.Fprintf(&sent, "line %d\n", i)
				}
				clients.Go(func() {
					for line := range bytes.Lines(sent.Bytes()) {
						if _, err := c.conn.Write(line); err != nil {
							break
						}
						time.Sleep(time.Millisecond)
					}
				})
				clients.Go(func() {
					_ = c.conn.SetReadDeadline(time.Now().Add(time.Minute))
					got, _ := io.ReadAll(c.r)
					if !bytes.HasPrefix(sent.Bytes(), got) {
						t.Errorf("seed %d: received %q", seed, got)
					}
				})
			}
			faults := []func(){
				p.Cut, p.CutRequests, p.CutReplies, p.Heal, p.Heal, p.Hang, p.Resume, p.Resume,
				func() { p.SetDelay(time.Duration(rng.IntN(20)) * time.Millisecond) },
				func() { p.DropReplies(rng.IntN(2)) },
				func() {
					if rng.IntN(4) == 0 {
						p.HealByReset()
					}
				},
			}
			for range 40 {
				faults[rng.IntN(len(faults))]()
				time.Sleep(2 * time.Millisecond)
			}
			p.Close()
			clients.Wait()
		})
	}
}
