package redisnode

import (
	"fmt"
	"sync"

	"github.com/quorumlock/redlock/internal/facts"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/wire"
)

// infoSections are the parts of INFO that say whether a server may vote.
var infoSections = []string{"server", "replication", "memory", "cluster"}

// rejectReason says why a server with these facts must not vote, or nothing.
func rejectReason(f facts.Facts) string {
	if why, todo := f.Unsupported(); why != "" {
		return fmt.Sprintf("it is %s, %s: %s", f.Server(), why, todo)
	}
	switch {
	case f.Replica():
		return fmt.Sprintf("it is a %s (INFO role) of %s: give its master", f["role"], f.Master())
	case f.Cluster():
		return "it is a node of a Redis Cluster (INFO cluster_enabled:1), where keys move and replicas take over: give independent servers"
	case f.Evicts() && f.Limited():
		return fmt.Sprintf("its maxmemory-policy %s may evict locks (maxmemory %s): set noeviction", f["maxmemory_policy"], f["maxmemory"])
	}
	return ""
}

// warning says what is better changed, or nothing.
func warning(f facts.Facts) string {
	_, known := f.KeepsScripts()
	switch {
	case f["run_id"] == "" && !known:
		return "it does not say what it is (INFO server), nor whether its scripts stay in one process (EVAL), so it may be a replica, the same server as another node, or one that takes a restart for none: allow INFO, and EVAL with the key " + script.ProbeKey
	case f["run_id"] == "":
		return "it does not say what it is (INFO server), so it may be a replica, or the same server as another node"
	case f.Evicts():
		return fmt.Sprintf("its maxmemory-policy is %s: locks may be evicted as soon as maxmemory is set; set noeviction", f["maxmemory_policy"])
	}
	return ""
}

// A Registry knows the nodes of a Locker by their run_id, so that one server
// under two addresses is not asked twice for the same vote: it would make a
// majority out of a minority.
type Registry struct {
	warn  func(error)
	names []string // the nodes' addresses

	mu     sync.Mutex
	runIDs []string
	warned []bool
}

// NewRegistry makes one for the nodes at these addresses. What is unwise is told to warn.
func NewRegistry(names []string, warn func(error)) *Registry {
	return &Registry{warn: warn, names: names, runIDs: make([]string, len(names)), warned: make([]bool, len(names))}
}

// Admit judges node i by what it says of itself.
func (r *Registry) Admit(i int, about facts.Facts) error {
	if why := rejectReason(about); why != "" {
		return wire.UnfitError(why)
	}
	r.mu.Lock()
	id := about["run_id"]
	for j, other := range r.runIDs {
		if id != "" && other == id && j != i {
			// What this address was before it is not any more; or two that have been swapped would
			// be in each other's way for ever. The other one still is, for all that is known.
			r.runIDs[i] = ""
			r.mu.Unlock()
			return wire.UnfitError(fmt.Sprintf("it is the same server as %s (INFO run_id %s)", r.names[j], id))
		}
	}
	r.runIDs[i] = id
	why := warning(about)
	tell := why != "" && !r.warned[i]
	r.warned[i] = why != ""
	r.mu.Unlock()
	if tell {
		r.warn(fmt.Errorf("redlock: node %s: %s", r.names[i], why))
	}
	return nil
}
