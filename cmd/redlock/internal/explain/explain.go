// Package explain says why there is no lock, or no vote, and what can be done about it: pure
// functions of the nodes' answers.
package explain

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
	"github.com/quorumlock/redlock/internal/facts"
	"github.com/quorumlock/redlock/internal/printable"
	"github.com/quorumlock/redlock/internal/wire"
)

// Reason returns, in words, why a lock was not acquired: who holds it, or what each node did.
func Reason(why *redlock.QuorumError) string {
	type claim struct {
		nodes int
		ttl   time.Duration
	}
	holders := make(map[string]claim)
	var others []string
	for _, n := range why.Nodes() {
		if n.Outcome == redlock.OutcomeHeld {
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
		parts = append(parts, fmt.Sprintf("%s on %s, %v left unless renewed", Holder(token), phrase.Count(h.nodes, "node"), h.ttl))
	}
	parts = append(parts, others...)
	return fmt.Sprintf("%q: %v (%s, %d of %d needed): %s", why.Name, why.Kind, phrase.Count(why.Granted, "vote"), why.Need, why.N, strings.Join(parts, "; "))
}

// Holder returns, for messages, who holds a lock with this token: the owner that it names, or the token.
func Holder(token string) string {
	if owner := redlock.Identify(token).Owner; owner != "" {
		return printable.Holder(owner, wire.Secret(token))
	}
	return "token " + printable.Brief(token)
}

// What returns what a node did in the place of a grant, without the node's address.
func What(e *redlock.NodeError) string { return strings.TrimPrefix(e.Error(), e.Node+": ") }

// Mended reports whether a quorum can vote once the quarantines are over: then waiting helps. A node whose answer was
// not waited for counts as one that would have granted.
func Mended(why *redlock.QuorumError) bool {
	waiting, able := 0, why.N
	for _, n := range why.Nodes() {
		if n.Outcome == redlock.OutcomeQuarantined {
			waiting++
		} else {
			able--
		}
	}
	return waiting > 0 && able >= why.Need
}

// ForOperator reports whether the error names the command with which an operator mends the set.
func ForOperator(err error) bool {
	text := err.Error()
	return strings.Contains(text, "redlock members forget") || strings.Contains(text, "redlock members restore")
}

// Remedy returns what can be done about nodes that do not vote, by the most frequent reason. need is how many votes are
// needed. A quarantine is no such reason: it ends by itself.
func Remedy(nodes []*redlock.NodeError, need int) string {
	trouble := make(map[redlock.Outcome]int)
	for _, n := range nodes {
		if n.Outcome != redlock.OutcomeHeld && n.Outcome != redlock.OutcomeQuarantined {
			trouble[n.Outcome]++
		}
	}
	var worst redlock.Outcome
	for outcome, n := range trouble {
		if n > trouble[worst] || n == trouble[worst] && outcome > worst {
			worst = outcome
		}
	}
	for _, n := range nodes {
		if todo := facts.Todo(n.Err); n.Outcome == worst && todo != "" {
			return todo
		}
	}
	switch worst {
	case redlock.OutcomeUnreachable:
		return "do these Redis servers run, and can they be reached from here? " + phrase.Count(need, "node") + " must answer"
	case redlock.OutcomeTimeout:
		return "are these Redis servers hung, overloaded or far away? Each has a tenth of the TTL to answer, from 50ms to 500ms, and no longer than --timeout"
	case redlock.OutcomeDenied:
		return "look at user and password in the URLs (redis://user:password@host:port) or the configuration file, and at the user's ACL"
	case redlock.OutcomeNotALock:
		return "use another --key, or delete that key on the nodes if nothing needs it"
	case redlock.OutcomeIneligible:
		if slices.ContainsFunc(nodes, func(n *redlock.NodeError) bool { return n.Err != nil && ForOperator(n.Err) }) {
			return "redlock members shows what each of the nodes keeps"
		}
		return "change that setting, or use another server; redlock doctor examines all of them"
	}
	return "look at these nodes: votes of " + phrase.Count(need, "node") + " are needed"
}

// Voteless returns a sentence: how many of n nodes have no vote (absent), and why.
func Voteless(absent []*redlock.NodeError, n int) string {
	return Without(NoVote(len(absent)), absent, n)
}

// NoVote returns "has no vote" for one absent node, and "have no vote" for another number.
func NoVote(absent int) string { return phrase.Verb(absent, "has no vote", "have no vote") }

// Without returns a sentence: how many of n nodes are absent, what that means ("have no vote", say), and why.
func Without(what string, absent []*redlock.NodeError, n int) string {
	var each []string
	for _, e := range absent {
		each = append(each, e.Error())
	}
	return fmt.Sprintf("%d of %s %s: %s", len(absent), phrase.Count(n, "node"), what, strings.Join(each, "; "))
}

// RemedyForAll returns what can be done about the absent of n nodes, where all of them are needed.
func RemedyForAll(absent []*redlock.NodeError, n int) string {
	var rest time.Duration
	for _, e := range absent {
		if e.Outcome != redlock.OutcomeQuarantined {
			return Remedy(absent, n)
		}
		rest = max(rest, e.TTL)
	}
	return fmt.Sprintf("the quarantine ends by itself: %s in %v", AllVote(n), phrase.Tenths(rest))
}

// AllVote returns a sentence: all of n nodes vote.
func AllVote(n int) string {
	if n == 1 {
		return "the node votes"
	}
	return fmt.Sprintf("all %d nodes vote", n)
}

// Unfinished reports whether the deadline has cut a round short, so that the error says nothing about the nodes.
func Unfinished(err error) bool {
	var why *redlock.QuorumError
	if !errors.As(err, &why) {
		return true // there was not even time for one
	}
	for _, n := range why.Nodes() {
		if n.Outcome == redlock.OutcomeTimeout && n.Err == nil {
			return true
		}
	}
	return false
}

// Absent returns, for the nodes that have no vote, why.
func Absent(s *redlock.Status) (nodes []*redlock.NodeError) {
	for _, n := range s.Nodes {
		if n.Err != nil {
			nodes = append(nodes, n.Err)
		}
	}
	return nodes
}
