// Package facts has what a Redis server says of itself, and what of it decides whether
// the server may vote.
package facts

import "strings"

// Facts are the fields of INFO. What a server does not say is not held against it.
type Facts map[string]string

// Add takes the text of INFO, or of some of its sections.
func (f Facts) Add(info string) {
	for line := range strings.Lines(info) {
		if field, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			f[field] = value
		}
	}
}

// Replica reports that a master may have promised what this server has not heard of.
func (f Facts) Replica() bool { return f["role"] != "" && f["role"] != "master" }

// Master is the address of the one that a replica follows.
func (f Facts) Master() string { return f["master_host"] + ":" + f["master_port"] }

// Cluster reports that keys move to other servers, and that replicas take over.
func (f Facts) Cluster() bool { return f["cluster_enabled"] == "1" }

// Evicts reports that the server drops keys, locks too, when it has used up its
// maxmemory; and Limited, that it has one.
func (f Facts) Evicts() bool {
	return f["maxmemory_policy"] != "" && f["maxmemory_policy"] != "noeviction"
}

func (f Facts) Limited() bool { return f["maxmemory"] != "0" }
