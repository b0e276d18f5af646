package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/printable"
)

// notAcquired makes of the library's error what somebody needs to know whose
// command did not run.
func notAcquired(cfg *runConfig, err error) error {
	var why *redlock.QuorumError
	switch {
	case errors.As(err, &why):
	case errors.Is(err, context.DeadlineExceeded):
		return fail(exitNoQuorum, "", "%v", err)
	default:
		return fail(exitUsage, "see redlock help run", "%s", plain(err))
	}
	within := fmt.Sprintf("not acquired within --timeout %v: ", cfg.timeout)
	patience := fmt.Sprintf("wait longer than --timeout %v, or without --timeout for as long as it takes", cfg.timeout)
	switch {
	case cfg.timeout == 0:
		within, patience = "not acquired: ", "give --timeout 30s, say, to wait for it, or no --timeout to wait for as long as it takes"
	case cfg.timeout < 0:
		within = "" // waiting would not have helped
	}
	switch {
	case errors.Is(err, redlock.ErrHeld):
		return fail(cfg.busy, patience, "%s%s", within, reason(why))
	case mended(why):
		return fail(exitNoQuorum, patience+"; redlock prepare, run once when nodes are deployed, has them vote before", "%s%s", within, reason(why))
	}
	return fail(exitNoQuorum, remedy(why.Nodes(), why.Need), "%s%s", within, reason(why))
}

// mended reports whether there will be votes enough when the nodes that are in
// quarantine have theirs. That one was not asked to the end is not held against it.
func mended(why *redlock.QuorumError) bool {
	waiting, able := 0, why.N
	for _, n := range why.Nodes() {
		if n.Outcome == redlock.Quarantined {
			waiting++
		} else {
			able--
		}
	}
	return waiting > 0 && able >= why.Need
}

// reason says why a lock could not be had: who has it, or which node did what.
func reason(why *redlock.QuorumError) string {
	type claim struct {
		nodes int
		ttl   time.Duration
	}
	holders := make(map[string]claim)
	var others []string
	for _, n := range why.Nodes() {
		if n.Outcome == redlock.Held {
			h := holders[n.Holder]
			holders[n.Holder] = claim{h.nodes + 1, max(h.ttl, n.TTL)}
			continue
		}
		others = append(others, n.Error())
	}
	var parts []string
	for _, token := range slices.SortedFunc(maps.Keys(holders), func(a, b string) int {
		return cmp.Or(holders[b].nodes-holders[a].nodes, strings.Compare(a, b))
	}) {
		h := holders[token]
		parts = append(parts, fmt.Sprintf("token %s on %s, %v left unless renewed", printable.Text(token), count(h.nodes, "node"), h.ttl))
	}
	parts = append(parts, others...)
	return fmt.Sprintf("%q: %v (%d of %s): %s", why.Name, why.Kind, why.Granted, count(why.Need, "vote"), strings.Join(parts, "; "))
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// remedy says what can be done about nodes that give no vote, by the trouble that
// most of them have. A quarantine is none: it passes.
func remedy(nodes []*redlock.NodeError, need int) string {
	trouble := make(map[redlock.Outcome]int)
	for _, n := range nodes {
		if n.Outcome != redlock.Held && n.Outcome != redlock.Quarantined {
			trouble[n.Outcome]++
		}
	}
	var worst redlock.Outcome
	for outcome, n := range trouble {
		if n > trouble[worst] || n == trouble[worst] && outcome > worst {
			worst = outcome
		}
	}
	switch worst {
	case redlock.Unreachable:
		return "do these Redis servers run, and can they be reached from here? " + count(need, "node") + " must answer"
	case redlock.Timeout:
		return "are these Redis servers hung, overloaded or far away? Each has a tenth of --ttl to answer, from 50ms to 500ms, and no longer than --timeout"
	case redlock.Denied:
		return "look at user and password in the URLs (redis://user:password@host:port), and at the user's ACL"
	case redlock.Foreign:
		return "take another --key, or delete that key on the nodes if nobody needs it"
	case redlock.Unfit:
		return "change what is said of it, or give another server; redlock doctor examines all of them"
	}
	return "look at these nodes: votes of " + count(need, "node") + " are needed"
}
