package script_test

import (
	"hash/fnv"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/wire"
)

// TestBucket: the bucket of a name is part of the protocol: two versions that differ would give a lock two counters of fences.
// The hash is 32-bit FNV-1a, which hash/fnv has too, but allocates.
func TestBucket(t *testing.T) {
	for name, want := range map[string]string{"": "3525", "a": "2348", "redlock:jobs/nightly": "2801"} {
		h := fnv.New32a()
		h.Write([]byte(name))
		if script.Hash(name) != h.Sum32() {
			t.Errorf("the hash of %q is %d, in hash/fnv %d", name, script.Hash(name), h.Sum32())
		}
		if got := *script.Bucket(name); got != want {
			t.Errorf("%q has bucket %s, want %s", name, got, want)
		}
	}
	if n := testing.AllocsPerRun(10, func() { _ = script.Bucket("a") }); n > 0 {
		t.Errorf("it allocates %v times", n)
	}
}

// TestLockOf: which lock a key on a node belongs to, and which keys are no lock's.
func TestLockOf(t *testing.T) {
	for _, tt := range []struct {
		key, lock string
		queue, ok bool
	}{
		{"a", "a", false, true},
		{"a:queue", "a", true, true},
		{"a:queue:queue", "", false, false}, // nobody can lock a:queue: its key would be a's queue
		{"a:slot:3", "", false, false},
		{"a:slot:x", "a:slot:x", false, true}, // no slot: slots are numbered
		{":queue", "", false, false},
		{script.Marker, "", false, false},
		{script.Broken + "token", "", false, false},
	} {
		if lock, queue, ok := script.LockOf(tt.key); lock != tt.lock || ok != tt.ok || ok && queue != tt.queue {
			t.Errorf("%q: %q, %v, %v; want %q, %v, %v", tt.key, lock, queue, ok, tt.lock, tt.queue, tt.ok)
		}
	}
}

// TestReservedKeysStay: what belongs to the nodes stays on them when all locks are gone, and so do queues for a while.
func TestReservedKeysStay(t *testing.T) {
	for _, key := range append([]string{script.Marker, script.Fences, script.Belows, script.Broken + "token"}, script.Sets...) {
		if script.Reserved(key) == "" || !script.Lasting(key) {
			t.Errorf("%s: reserved since it %q, lasting %v", key, script.Reserved(key), script.Lasting(key))
		}
	}
	if script.Reserved("a:queue") != "" || !script.Lasting("a:queue") {
		t.Error("a queue is no reserved key, and lasts")
	}
	if script.Reserved("a") != "" || script.Lasting("a") {
		t.Error("a lock's key is reserved, or lasts")
	}
}

// TestAcquireIsAnotherScriptForEachRun: a server that was restarted does not have the script of before, and says so; all other
// scripts are the same for every server.
func TestAcquireIsAnotherScriptForEachRun(t *testing.T) {
	one, two := script.All("one"), script.All("two")
	if one[0].Hash == two[0].Hash || one[0].Hash != script.Acquire("one").Hash {
		t.Error("the script does not depend on the run_id, or not on it alone")
	}
	for i := range one[1:] {
		if one[i+1] != two[i+1] {
			t.Errorf("script %d depends on the run_id", i+1)
		}
	}
}

// TestSettledMarker: it is of this run of the server, and so old that no quarantine is left.
func TestSettledMarker(t *testing.T) {
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	m, ok := wire.ParseMarker(script.Settled("id", now))
	if !ok || m.RunID != "id" || now.Sub(time.UnixMilli(m.Born)) < 9*365*24*time.Hour || m.Writer != m.Born {
		t.Errorf("it is %+v, %v", m, ok)
	}
}
