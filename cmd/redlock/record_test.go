//go:build unix

package main

import (
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/cmd/redlock/internal/peek"
	"github.com/quorumlock/redlock/internal/recording"
	lua "github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
)

// The recorder follows the members of the set, through each epoch, also when no node that it was given is left.
func TestRecordFollowsTheMembers(t *testing.T) {
	w := &ward{T: t, servers: redistest.Servers(t, 6)}
	w.described(3, "--ttl", "2s", "--max-ttl", "2s")
	file := filepath.Join(t.TempDir(), "record")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if code, _, stderr := w.redlock("record", file, "-q"); code != 128+int(syscall.SIGTERM) {
			t.Errorf("exit status %d, stderr %q", code, stderr)
		}
	}()
	stop := sync.OnceFunc(func() {
		if err := syscall.Kill(syscall.Getpid(), syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		<-ended
	})
	defer stop()
	epoch := func() (epoch int64, members string) {
		_ = recording.Lines(file, func(l *recording.Line) {
			if l.Set != nil {
				epoch, members = l.Set.Epoch, strings.Join(l.Set.Nodes, " ")
			}
		})
		return epoch, members
	}
	if !within(patience, func() bool { is, _ := epoch(); return is == 1 }) {
		t.Fatal("it does not begin")
	}
	for i := range 3 {
		w.must("members", "replace", w.servers[i].Addr, w.servers[3+i].URL(), "-q")
		w.give(1+i, 2+i, 3+i)
	}
	want := strings.Join([]string{w.servers[3].Addr, w.servers[4].Addr, w.servers[5].Addr}, " ")
	if !within(patience, func() bool { is, of := epoch(); return is == 7 && of == want }) {
		is, of := epoch()
		t.Errorf("it is at epoch %d with %s", is, of)
	}
}

// A member that was not told of the last change does not hide it from a hasty look, however fast it answers.
func TestHastyLookSeesTheLastChange(t *testing.T) {
	w := &ward{T: t, servers: redistest.Servers(t, 3)}
	w.described(3)
	first := redis.NewClient(&redis.Options{Addr: w.servers[0].Addr})
	defer first.Close()
	before, err := first.Get(t.Context(), lua.Told).Result()
	w.check(err)
	w.must("members", "set", "quorum", "3", "-q")
	w.check(first.Set(t.Context(), lua.Told, before, 0).Err())
	var servers []*redis.Options
	for _, s := range w.servers {
		servers = append(servers, &redis.Options{Addr: s.Addr})
	}
	for range 20 {
		if d := peek.Read(servers, true).Set; d == nil || d.Epoch != 2 {
			t.Fatalf("%+v", d)
		}
	}
}
