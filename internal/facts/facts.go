// Package facts reads what a Redis server says about itself, and decides by it whether the server may vote.
package facts

import (
	"strings"
)

// Facts are the fields of INFO, by name. A missing field is not held against the server.
type Facts map[string]string

// mostOfValue is how long a value may be. All that Facts are asked for are shorter, and errors quote them.
const mostOfValue = 200

// Add adds the fields in the text of INFO, or of some of its sections. It leaves out values longer than mostOfValue.
func (f Facts) Add(info string) {
	for line := range strings.Lines(info) {
		if field, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && len(value) <= mostOfValue {
			f[field] = value
		}
	}
}

// Replica reports whether the server is a replica: its master may have granted locks that have not reached it yet.
func (f Facts) Replica() bool { return f["role"] != "" && f["role"] != "master" }

// Master returns the address HOST:PORT of the replica's master. Only a Replica has one.
func (f Facts) Master() string { return f["master_host"] + ":" + f["master_port"] }

// Cluster reports whether the server is part of a Redis Cluster: keys move to other servers, and replicas take over.
func (f Facts) Cluster() bool { return f["cluster_enabled"] == "1" }

// Evicts reports whether the server drops keys, and so locks, when it has used up its maxmemory; Limited, whether it
// has a maxmemory at all.
func (f Facts) Evicts() bool {
	return f["maxmemory_policy"] != "" && f["maxmemory_policy"] != "noeviction"
}

func (f Facts) Limited() bool { return f["maxmemory"] != "0" }
