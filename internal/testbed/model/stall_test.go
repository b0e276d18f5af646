package model_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/testbed/model"
	"github.com/quorumlock/redlock/internal/wire"
)

// TestStall: what is sent over a connection that stalls is carried out after what is sent over a new one, in its order, and
// also if the client has given the connection up.
func TestStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, h := model.NewNode(1, "node0", 0), model.NewHost(sim.Seed(2), "p1")
		call := model.Call{Op: wire.Acquire, Keys: []string{"a"}, Modes: "x", Token: "t.1.@a@@", TTL: time.Minute}
		dial := func() *model.Link {
			link := n.Dial(h, time.Second)
			mark, err := link.Connect(t.Context(), wire.Hello{Marked: true})
			if err != nil {
				t.Fatal(err)
			}
			call.Mark = mark.Value
			return link
		}
		has := func() (token string) {
			for _, token = range n.Tokens() {
			}
			return token
		}
		link := dial()
		time.Sleep(time.Millisecond) // of virtual time
		n.Stall(true)
		first, release, second := call, call, call
		release.Op, second.Token = wire.Release, "t.2.@a@@"
		link.Send([]model.Call{first})
		link.Send([]model.Call{release})
		link.Send([]model.Call{second})
		if _, err := link.Receive(0); err == nil {
			t.Fatal("the connection does not stall")
		}
		other := call
		other.Token = "t.3.@a@@"
		next := dial()
		if err := next.Exec([]model.Call{other}); err != nil || has() != other.Token {
			t.Fatalf("over a new connection: %v, the node has %q", err, has())
		}
		other.Op = wire.Release
		if err := next.Exec([]model.Call{other}); err != nil || has() != "" {
			t.Fatalf("over a new connection: %v, the node has %q", err, has())
		}
		n.Stall(false)
		synctest.Wait()
		if has() != second.Token {
			t.Errorf("the node has %q", has())
		}
	})
}
