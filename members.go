package redlock

import (
	"slices"
	"time"

	"github.com/quorumlock/redlock/internal/set"
	"github.com/quorumlock/redlock/internal/wire"
)

// Members says which nodes a set has, and what they have agreed on.
type Members struct {
	Set   string   // names the set
	Epoch int64    // counts the changes of the set, from 1; 0: it has no description yet
	Nodes []string // their addresses

	Quorum    int           // of the nodes, how many must grant a lock
	Separator string        // see Options
	MaxTTL    time.Duration // the longest TTL of a lock

	// LongerTTL is the longer of two MaxTTLs, while a change from one to the other is under way: MaxTTL is the shorter
	// one, and quarantines go by this one. 0: no change is.
	LongerTTL time.Duration

	Since time.Time // when this was proposed, by the clock of who did
}

func described(d *wire.Description) Members {
	return Members{
		Set: d.Set, Epoch: d.Epoch, Nodes: slices.Clone(d.Members), Quorum: d.Needs(),
		Separator: d.Separator, MaxTTL: wire.Milliseconds(d.MaxTTL), LongerTTL: wire.Milliseconds(d.Other), Since: time.UnixMilli(d.Since),
	}
}

func membersOf(v *set.View) Members {
	if v.Description != nil {
		return described(v.Description)
	}
	m := Members{Quorum: v.Quorum}
	for _, n := range v.Lanes {
		m.Nodes = append(m.Nodes, n.Name)
	}
	return m
}
