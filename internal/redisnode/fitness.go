package redisnode

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/quorumlock/redlock/internal/facts"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/wire"
)

// infoSections are the parts of INFO that say whether a server may vote.
var infoSections = []string{"server", "replication", "memory", "cluster"}

// rejectReason says why a server with these facts must not vote; "": it may vote.
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

// warning says what an operator should change at a server that may vote; "": nothing.
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

// A Registry knows the nodes of a Locker by their run_id, so that one server under two addresses does not vote twice:
// that would make a majority of a minority. Nodes have the numbers of their lanes.
type Registry struct {
	warn func(error)

	mu      sync.Mutex // protects what follows
	nodes   map[int]registered
	retired map[int]bool // the indexes of nodes that are no members any more
}

// A registered is a node that has said what it is.
type registered struct {
	name, runID string
	warned      bool // its operator was told; reset when the reason is gone
}

// NewRegistry makes a Registry. It calls warn with what an operator should change at a node, once until that is mended.
func NewRegistry(warn func(error)) *Registry {
	return &Registry{warn: warn, nodes: make(map[int]registered), retired: make(map[int]bool)}
}

// Retire forgets node i (the number of its lane), no member any more. Its server may join again, as another number.
func (r *Registry) Retire(i int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.nodes, i)
	r.retired[i] = true
}

// Admit returns why node i (the number of its lane) at the address name may not vote, by what its server says of
// itself; nil: it may. It warns of what an operator should change.
func (r *Registry) Admit(i int, name string, about facts.Facts) error {
	if why := rejectReason(about); why != "" {
		return wire.UnfitError(why)
	}
	if err := about.Lacks(); err != nil {
		return err
	}
	r.mu.Lock()
	if r.retired[i] {
		r.mu.Unlock()
		return nil
	}
	id, node := about["run_id"], r.nodes[i]
	node.name = name
	for _, j := range slices.Sorted(maps.Keys(r.nodes)) {
		if other := r.nodes[j]; id != "" && other.runID == id && j != i {
			// The old run_id of node i is wrong now. If it stayed, two servers that have swapped addresses would reject each
			// other for ever. Node j keeps its run_id, since nothing newer is known about it.
			node.runID = ""
			r.nodes[i] = node
			r.mu.Unlock()
			return wire.UnfitError(fmt.Sprintf("it is the same server as %s (INFO run_id %s)", other.name, id))
		}
	}
	node.runID = id
	why := warning(about)
	tell := why != "" && !node.warned
	node.warned = why != ""
	r.nodes[i] = node
	r.mu.Unlock()
	if tell {
		r.warn(fmt.Errorf("redlock: node %s: %s", name, why))
	}
	return nil
}
