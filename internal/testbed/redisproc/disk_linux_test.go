package redisproc

import (
	"strings"
	"testing"
	"time"
)

// TestLimitFiles: on a full disk a server answers the first write that it cannot save, refuses later ones, and takes
// writes again when there is room.
func TestLimitFiles(t *testing.T) {
	IgnoreFileLimit()
	s := start(t, "--appendonly", "yes", "--appendfsync", "no")
	if err := s.LimitFiles(0); err != nil {
		t.Fatal(err)
	}
	got, err := say(s.Addr, "SET k v", 5*time.Second)
	for range 3 {
		got, err = say(s.Addr, "SET k v", 5*time.Second)
	}
	if err != nil || !strings.HasPrefix(got, "-MISCONF ") {
		t.Errorf("on a full disk it says %q, %v", got, err)
	}
	if err := s.LimitFiles(-1); err != nil {
		t.Fatal(err)
	}
	within(t, 10*time.Second, "a write when there is room", func() bool {
		got, err = say(s.Addr, "SET k v", 5*time.Second)
		return err == nil && got == "+OK"
	})
	s.Kill()
	if s.LimitFiles(0) == nil {
		t.Error("a server that is down is limited")
	}
}
