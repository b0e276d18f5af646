package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/quorumlock/redlock/bench/contender"
)

// A scenario measures one situation and returns what it found, ready to print.
type scenario struct {
	name  string
	title string
	run   func(context.Context, *env) ([]*table, error)
}

func scenarios() []scenario {
	return []scenario{
		{"uncontended", "Lock and unlock, one caller", uncontended},
		{"fence", "What the fence costs, and the proof that a node has not forgotten", fence},
		{"throughput", "Many callers, each on names of its own", throughput},
		{"node", "What a lock costs one node", node},
		{"kinds", "Kinds of lock", kinds},
		{"waiting", "Many waiters for the same name", waiting},
		{"hung", "Nodes that accept requests and do not answer (SIGSTOP)", hung},
		{"killed", "Nodes whose process is gone", killed},
		{"slow", "Nodes 20 ms further away", slow},
		{"orphans", "Keys without an owner, left on the nodes", orphans},
		{"ls", "A list of many locks, and what other clients notice of it", list},
		{"renewal", "Many locks held and renewed by one process", renewal},
	}
}

// pick keeps what a comma-separated list names, in the order of all; an empty
// list keeps everything.
func pick[T any](all []T, list string, name func(T) string) ([]T, error) {
	if list == "" {
		return all, nil
	}
	var known []string
	for _, v := range all {
		known = append(known, name(v))
	}
	wanted := strings.Split(list, ",")
	for _, w := range wanted {
		if !slices.Contains(known, w) {
			return nil, fmt.Errorf("unknown name %q; there are: %s", w, strings.Join(known, ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(v T) bool {
		return !slices.Contains(wanted, name(v))
	}), nil
}

func contenderName(c contender.Contender) string { return c.Name }
func scenarioName(s scenario) string             { return s.name }
