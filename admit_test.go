package redlock

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// TestUnfit: New refuses nodes that would break a lock, by what they say of
// themselves, and names node and setting (F1).
func TestUnfit(t *testing.T) {
	type info = map[string]string
	for _, tt := range []struct {
		name string
		info map[int]info
		want []string // in the error; none: it opens
		warn string
	}{
		{"all well", nil, nil, ""},
		{"a replica", map[int]info{1: {"role": "slave", "master_host": "10.0.0.9", "master_port": "6379"}},
			[]string{"10.0.0.2:6379: ineligible: must not vote: it is a slave (INFO role) of 10.0.0.9:6379"}, ""},
		{"a cluster node", map[int]info{0: {"cluster_enabled": "1"}},
			[]string{"10.0.0.1:6379: ineligible", "cluster_enabled:1"}, ""},
		{"the same server twice", map[int]info{0: {"run_id": "abc"}, 2: {"run_id": "abc"}},
			[]string{"it is the same server as 10.0.0.", "run_id abc"}, ""},
		{"eviction", map[int]info{2: {"maxmemory": "1000000", "maxmemory_policy": "allkeys-lru"}},
			[]string{"10.0.0.3:6379: ineligible", "maxmemory-policy allkeys-lru may evict locks (maxmemory 1000000): set noeviction"}, ""},
		{"eviction of keys with a TTL", map[int]info{2: {"maxmemory": "1", "maxmemory_policy": "volatile-ttl"}},
			[]string{"volatile-ttl"}, ""},
		{"an old Redis", map[int]info{1: {"redis_version": "6.2.14"}},
			[]string{"10.0.0.2:6379: ineligible: must not vote: it is Redis 6.2.14, and the scripts need Redis 7.0: use Redis 7.0 or later, Valkey or Redict"}, ""},
		{"Dragonfly", map[int]info{2: {"dragonfly_version": "df-v1.40.1"}},
			[]string{"10.0.0.3:6379: ineligible: must not vote: it is Dragonfly df-v1.40.1, which does not say which process it is"}, ""},
		{"Garnet", map[int]info{0: {"garnet_version": "1.0.99"}},
			[]string{"10.0.0.1:6379: ineligible: must not vote: it is Garnet 1.0.99, which does not run scripts atomically"}, ""},
		{"Kvrocks", map[int]info{0: {"kvrocks_version": "2.12.0"}}, []string{"it is Kvrocks 2.12.0, which keeps scripts on disk"}, ""},
		{"Valkey and Redict", map[int]info{0: {"valkey_version": "9.1.2"}, 1: {"redict_version": "7.3.6"}}, nil, ""},
		{"two at once", map[int]info{0: {"role": "slave"}, 1: {"cluster_enabled": "1"}},
			[]string{"10.0.0.1:6379: ineligible", "10.0.0.2:6379: ineligible"}, ""},
		{"no memory limit yet", map[int]info{2: {"maxmemory_policy": "allkeys-lru"}}, nil,
			"redlock: node 10.0.0.3:6379: its maxmemory-policy is allkeys-lru"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				nodes := redistest.NewBubble(t, 3)
				for i, fields := range tt.info {
					for field, value := range fields {
						nodes.SetInfo(i, field, value)
					}
				}
				var told warnings
				lk, err := New(nodes.Clients(), &Options{Hooks: &Hooks{Warning: told.add}})
				if err == nil {
					defer lk.Close()
				}
				if (err == nil) != (tt.want == nil) {
					t.Errorf("got %v, want %q", err, tt.want)
				}
				for _, want := range tt.want {
					if !strings.Contains(message(err), want) {
						t.Errorf("got %v, want %q", err, want)
					}
				}
				if got := told.all(); (got == "") != (tt.warn == "") || !strings.Contains(got, tt.warn) {
					t.Errorf("warned %q, want %q", got, tt.warn)
				}
			})
		})
	}
}

type warnings struct {
	mu   sync.Mutex
	text []string
}

func (w *warnings) add(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, err.Error())
}

func (w *warnings) all() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.text, "\n")
}

// TestUnfitLater: a node that was away when New looked, or comes back as
// something else, is checked then, and has no vote while it is unfit.
func TestUnfitLater(t *testing.T) {
	bubble(t, func(t *testing.T) {
		nodes := redistest.NewBubble(t, 3)
		nodes.Kill(0)
		lk, err := New(nodes.Clients(), &Options{Quarantine: -1})
		if err != nil {
			t.Fatal("a node that is down is no reason to refuse:", err)
		}
		defer lk.Close()
		nodes.SetInfo(0, "role", "slave")
		nodes.Restart(0, false)
		pass(2 * time.Second)
		nodes.SetInfo(1, "run_id", "f00")
		nodes.SetInfo(2, "run_id", "f00")
		nodes.Restart(2, true)
		nodes.Restart(1, true)
		pass(2 * time.Second)
		_, err = lk.TryAcquire(t.Context(), "a")
		for _, e := range wantQuorumError(t, err, ErrNoQuorum).Nodes() {
			if e.Outcome != OutcomeIneligible && e.Outcome != OutcomeUnreachable {
				t.Error(e)
			}
		}
		pass(2 * time.Second) // to and fro: each may have been first
		_, err = lk.TryAcquire(t.Context(), "a")
		q := wantQuorumError(t, err, ErrNoQuorum)
		if len(q.Nodes()) < 2 || q.Nodes()[0].Outcome != OutcomeIneligible || !strings.Contains(err.Error(), "same server as") {
			t.Error(err)
		}
		nodes.SetInfo(0, "role", "")
		nodes.SetInfo(1, "run_id", "")
		nodes.SetInfo(2, "run_id", "")
		nodes.Restart(2, false)
		pass(5 * time.Second)
		if _, err := lk.TryAcquire(t.Context(), "a"); err != nil {
			t.Errorf("all are well again: %v", err)
		}
	})
}

// TestSwappedAddresses: two servers have changed their addresses, and each is where the other
// was. That is no reason to keep them out; but one that is at both addresses is in once.
func TestSwappedAddresses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		nodes := redistest.NewBubble(t, 3)
		ids := []string{"aaa", "bbb", "ccc"}
		for i, id := range ids {
			nodes.SetInfo(i, "run_id", id)
		}
		lk, err := New(nodes.Clients(), &Options{Quarantine: -1})
		if err != nil {
			t.Fatal(err)
		}
		defer lk.Close()
		nodes.SetInfo(0, "run_id", ids[1])
		nodes.SetInfo(1, "run_id", ids[0])
		nodes.Restart(0, true)
		nodes.Restart(1, true)
		_, _ = lk.TryAcquire(t.Context(), "any") // and finds the connections broken
		pass(3 * time.Second)
		status, err := lk.Inspect(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range status.Nodes {
			if n.Err != nil {
				t.Errorf("swapped: %v", n.Err)
			}
		}

		nodes.SetInfo(0, "run_id", ids[0])
		nodes.Restart(0, true)
		_, _ = lk.TryAcquire(t.Context(), "any")
		pass(3 * time.Second)
		if status, err = lk.Inspect(t.Context(), "a"); err != nil || status.Nodes[0].Err == nil || status.Nodes[0].Err.Outcome != OutcomeIneligible || status.Nodes[1].Err != nil {
			t.Errorf("the same server twice: %v, %+v", err, status)
		}
	})
}

// TestRefusedClients: what is no client of one server is refused before anything
// is sent.
func TestRefusedClients(t *testing.T) {
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	defer cluster.Close()
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
	defer ring.Close()
	one := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer one.Close()
	open := func(nodes ...redis.UniversalClient) error {
		lk, err := New(nodes, nil)
		if err == nil {
			lk.Close()
		}
		return err
	}
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"cluster", open(one, cluster), "node 1: a *redis.ClusterClient is no"},
		{"ring", open(ring), "node 0: a *redis.Ring is no"},
		{"nil", open(one, nil), "node 1: a <nil> is no"},
		{"typed nil", open((*redis.Client)(nil)), "node 0: the *redis.Client is nil"},
		{"none", open(), "no nodes"},
		{"the same address twice", open(one, one), "nodes 0 and 1 are both 127.0.0.1:1"},
	} {
		if !strings.Contains(message(tt.err), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, tt.err, tt.want)
		}
	}
	for _, tt := range []struct{ url, want string }{
		{"http://user:secret@h:1", "node 1"},
		{"redis://user:secret@h:port", "node 1"},
		{"redis://user:sec%ret@h", "node 1"},
		{"redis://h:1/x", "node 1"},
		{"h:6379", "node 1"},
		{"redis://user:sec/ret@h", "node 1"},
		{"redis://user:sec#ret@h", "node 1"},
		{"redis://user:sec?ret@h", "node 1"},
		{"redis://user:12/sec@h", "node 1"},
		{"redis://user:12#sec@h", "node 1"},
		{"redis://user:12?sec@h", "node 1"},
		{"", "node 1"},
	} {
		_, err := Connect([]string{"redis://127.0.0.1:1", tt.url}, nil)
		if got := message(err); !strings.Contains(got, tt.want) || strings.Contains(got, "sec") {
			t.Errorf("%q: got %q, want %q and no password", tt.url, got, tt.want)
		}
	}
}

// TestEvenNumberIsUnwise: it works, and is warned of.
func TestEvenNumberIsUnwise(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var told warnings
		newModels(4).locker(t, &Options{Hooks: &Hooks{Warning: told.add}})
		if !strings.Contains(told.all(), "4 nodes: an even number") {
			t.Errorf("warned %q", told.all())
		}
	})
}

// TestOpeningWithAHungNode: one node that hangs costs a Locker that is opened and
// closed little, and not a NodeTimeout each.
func TestOpeningWithAHungNode(t *testing.T) {
	for hung, want := range []time.Duration{0, 50 * time.Millisecond, 50 * time.Millisecond, time.Second} {
		bubble(t, func(t *testing.T) {
			ms := newModels(5)
			for _, m := range ms[:hung] {
				m.hang()
			}
			begin := time.Now()
			lk := ms.locker(t, nil)
			if took := time.Since(begin); took != want {
				t.Errorf("%d of 5 hung: opened after %v, want %v", hung, took, want)
			}
			lk.Close()
			if took := time.Since(begin); took != want {
				t.Errorf("%d of 5 hung: opened and closed after %v, want %v", hung, took, want)
			}
		})
	}
}
