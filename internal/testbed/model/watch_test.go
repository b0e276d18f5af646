package model_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/testbed/model"
	"github.com/quorumlock/redlock/internal/wire"
)

// TestWatchSeesWhatIsAsked: each call of a message is told once, when it reaches the node, also a node that hangs, with
// the state of the node and of the keys at that time.
func TestWatchSeesWhatIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := model.NewNode(1, "node0", 0)
		var seen []string
		n.Watch(func(s model.Sight) {
			of := s.State & (model.Down | model.Hung | model.Full | model.Marked | model.Remarked | model.Ahead | model.Held)
			seen = append(seen, fmt.Sprintf("%v %b", s.Asked, of))
		})
		link := n.Dial(model.NewHost(sim.Seed(2), "p1"), time.Second)
		mark, err := link.Connect(t.Context(), wire.Hello{Marked: true})
		if err != nil {
			t.Fatal(err)
		}
		call := model.Call{Op: wire.Acquire, Keys: []string{"a"}, Modes: "x", Token: "t.1.@a@@", TTL: time.Minute, Mark: mark.Value}
		other := call
		other.Token = "t.2.@a@@"
		if err := link.Exec([]model.Call{call, other}); err != nil {
			t.Fatal(err)
		}
		n.Full(true)
		n.Step(time.Hour)
		n.Step(-time.Hour + time.Second)
		n.Hang(true)
		link.Send([]model.Call{{Op: wire.Extend, Keys: []string{"a"}, Modes: "x", Token: other.Token, Mark: mark.Value, TTL: time.Minute}})
		synctest.Wait()
		n.Hang(false)
		n.Restart(false)
		if _, err := link.Receive(0); err != nil {
			t.Error(err)
		}
		_ = link.Exec([]model.Call{{Op: wire.Release, Keys: []string{"a"}, Modes: "x", Token: call.Token, Mark: mark.Value}})
		n.Kill()
		_ = link.Exec([]model.Call{call})
		marked := model.Marked
		want := []string{
			fmt.Sprintf("connect %b", marked), fmt.Sprintf("acquire %b", marked), fmt.Sprintf("acquire %b", marked),
			fmt.Sprintf("extend %b", marked|model.Hung|model.Full|model.Ahead|model.Held), fmt.Sprintf("release %b", model.Remarked|model.Full|model.Ahead),
			fmt.Sprintf("acquire %b", model.Remarked|model.Full|model.Ahead|model.Down),
		}
		if !slices.Equal(seen, want) {
			t.Errorf("seen\n%v, want\n%v", seen, want)
		}
	})
}
