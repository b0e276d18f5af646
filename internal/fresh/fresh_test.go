package fresh_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/internal/fresh"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"github.com/quorumlock/redlock/internal/wire"
)

func TestMain(m *testing.M) { os.Exit(leaks.Main(m)) }

// A server is one empty miniredis in a bubble, with a client.
type server struct {
	*testing.T
	*redis.Client
	nodes *redistest.Bubble
}

func onServer(t *testing.T, f func(s *server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		leaks.Check(t)
		nodes := redistest.NewBubble(t, 1)
		client := nodes.Client(0)
		if err := client.FlushAll(t.Context()).Err(); err != nil { // it had the marker of a server that has been there for long
			t.Fatal(err)
		}
		f(&server{t, client, nodes})
	})
}

// put gives the server keys with a value.
func (s *server) put(value string, keys ...string) {
	s.Helper()
	for _, key := range keys {
		if err := s.Set(s.Context(), key, value, 0).Err(); err != nil {
			s.Fatal(err)
		}
	}
}

// keys compares the keys of the server.
func (s *server) keys(want ...string) {
	s.Helper()
	slices.Sort(want)
	got, err := s.Client.Keys(s.Context(), "*").Result()
	if slices.Sort(got); err != nil || !slices.Equal(got, want) {
		s.Errorf("the server has %q, want %q", got, want)
	}
}

// marker is what the server says of itself to clients that connect.
func (s *server) marker() wire.Marker {
	s.Helper()
	m, ok := wire.ParseMarker(s.Get(s.Context(), script.Marker).Val())
	if !ok {
		s.Fatalf("its marker is %q", s.Get(s.Context(), script.Marker).Val())
	}
	return m
}

func (s *server) runID() string {
	s.Helper()
	_, rest, _ := strings.Cut(s.Client.Info(s.Context(), "server").Val(), "run_id:")
	id, _, _ := strings.Cut(rest, "\r")
	return id
}

// TestSettleUnused: a server without any key gets the marker of one that has been running for long. Asked again, nothing
// is written, since now the server has been used.
func TestSettleUnused(t *testing.T) {
	onServer(t, func(s *server) {
		if is, err := fresh.Unused(s.Context(), s.Client); !is || err != nil {
			t.Errorf("a new server is unused: %v, %v", is, err)
		}
		s.keys() // to look writes nothing
		if done, err := fresh.SettleUnused(s.Context(), s.Client); !done || err != nil {
			t.Fatalf("settled: %v, %v", done, err)
		}
		m := s.marker()
		if age := time.Since(time.UnixMilli(m.Born)); m.RunID != s.runID() || age < 9*365*24*time.Hour {
			t.Errorf("its marker is %+v, of %v ago", m, age)
		}
		if is, err := fresh.Unused(s.Context(), s.Client); is || err != nil {
			t.Errorf("a server with a marker is unused: %v, %v", is, err)
		}
		if done, err := fresh.SettleUnused(s.Context(), s.Client); done || err != nil || s.marker() != m {
			t.Errorf("settled again: %v, %v", done, err)
		}
	})
}

// TestUsedServerIsNotSettled: a key of whatever kind, in whatever database, may be a lock's or a sign that there were locks.
func TestUsedServerIsNotSettled(t *testing.T) {
	for _, key := range append([]string{"a", script.Fences, script.Belows}, script.Sets...) {
		onServer(t, func(s *server) {
			s.put("v", key)
			if done, err := fresh.SettleUnused(s.Context(), s.Client); done || err != nil {
				t.Errorf("with %s it was settled: %v, %v", key, done, err)
			}
			s.keys(key)
		})
	}
	t.Run("another database", func(t *testing.T) {
		onServer(t, func(s *server) {
			opts := s.nodes.Options(0)
			opts.DB = 3
			other := redis.NewClient(opts)
			defer other.Close()
			if err := other.Set(s.Context(), "a", "v", 0).Err(); err != nil {
				s.Fatal(err)
			}
			if is, err := fresh.Unused(s.Context(), s.Client); is || err != nil {
				t.Errorf("unused: %v, %v", is, err)
			}
		})
	})
}

// TestSettleOverwrites: Settle writes the marker whatever the server keeps: its caller knows that the server has lost nothing.
func TestSettleOverwrites(t *testing.T) {
	onServer(t, func(s *server) {
		s.put("damaged", script.Marker, "a")
		if err := fresh.Settle(s.Context(), s.Client); err != nil {
			t.Fatal(err)
		}
		if m := s.marker(); m.RunID != s.runID() {
			t.Errorf("its marker is %+v", m)
		}
		s.keys("a", script.Marker)
	})
}

// TestForget: what the node keeps of its set and its marker go, in one step; locks and fences stay. Unsettle takes the marker only.
func TestForget(t *testing.T) {
	onServer(t, func(s *server) {
		all := append([]string{"lock", script.Fences, script.Marker}, script.Sets...)
		s.put("v", all...)
		if err := fresh.Unsettle(s.Context(), s.Client); err != nil {
			t.Fatal(err)
		}
		s.keys(append([]string{"lock", script.Fences}, script.Sets...)...)
		s.put("v", script.Marker)
		for _, want := range []bool{true, false} {
			if forgot, err := fresh.Forget(s.Context(), s.Client); forgot != want || err != nil {
				t.Errorf("there was something to forget: %v, %v; want %v", forgot, err, want)
			}
			s.keys("lock", script.Fences)
		}
	})
}

// TestRestore: the node keeps the new text, and forgets its marker and the choice that was under way, only if it still keeps
// what the operator has seen. Sent twice it says the same.
func TestRestore(t *testing.T) {
	told := wire.Kept{Self: "node0", Description: &wire.Description{Set: "s", Epoch: 2, Members: []string{"node0", "node1", "node2"}, MaxTTL: 10_000}}
	for _, tt := range []struct {
		name, kept, seen string
		done             bool
	}{
		{"as seen", "earlier", "earlier", true},
		{"none, as seen", "", "", true},
		{"already", told.String(), "earlier", true},
		{"something else by now", "later", "earlier", false},
		{"none by now", "", "earlier", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onServer(t, func(s *server) {
				s.put("v", script.Marker, script.Choice, "lock")
				if tt.kept != "" {
					s.put(tt.kept, script.Told)
				}
				done, err := fresh.Restore(s.Context(), s.Client, told, tt.seen)
				if done != tt.done || err != nil {
					t.Errorf("restored: %v, %v", done, err)
				}
				switch kept := s.Get(s.Context(), script.Told).Val(); {
				case done && kept != told.String(), !done && kept != tt.kept:
					t.Errorf("it keeps %q", kept)
				case done && tt.kept != told.String():
					s.keys("lock", script.Told)
				case s.Exists(s.Context(), script.Marker, script.Choice).Val() != 2:
					t.Error("it has forgotten its marker or the choice")
				}
			})
		})
	}
}
