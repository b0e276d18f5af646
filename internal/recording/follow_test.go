package recording

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
)

// TestUnreadNewsAreBounded: what a node tells of, and cannot be read, takes no memory without a bound.
func TestUnreadNewsAreBounded(t *testing.T) {
	r := New(nil, "", Every)
	f := newFollower(r, Node{Name: "n", Options: &redis.Options{}})
	defer f.client.Close()
	f.rewalk = false
	for i := range 2 * mostTold {
		f.heard(fmt.Sprint("a", i), "set")
	}
	f.heard("a0", "del")
	if n := len(f.dirty); n != mostTold || !f.rewalk || len(f.dirty["a0"].by) != 2 {
		t.Errorf("%d keys are to be read, and all again: %t", n, f.rewalk)
	}
}
