package operate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/console"
	"github.com/quorumlock/redlock/cmd/redlock/internal/peek"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
	"github.com/quorumlock/redlock/cmd/redlock/internal/reach"
	"github.com/quorumlock/redlock/internal/listing"
	"github.com/quorumlock/redlock/internal/wire"
)

// setMaxTTL changes the longest TTL. A shorter one bounds new locks at once. It bounds quarantines when no lock is
// held any more that lives longer. setMaxTTL looks whether that is so, is told (--locks-over), or waits for it; a
// long wait is left to a later command.
func setMaxTTL(ctx context.Context, c *console.Console, cfg *membersConfig, locker *redlock.Locker, servers []*redis.Options, change redlock.Change) (redlock.Members, error) {
	m, err := locker.Members(), error(nil)
	if m.MaxTTL != *change.MaxTTL {
		m, err = locker.Change(ctx, change, tellWaits(c))
	}
	if err != nil || m.LongerTTL == 0 || m.MaxTTL != *change.MaxTTL {
		return m, err
	}
	why, rest := "", reach.Quarantine(&redlock.Options{MaxTTL: m.LongerTTL})
	if !change.LongerOver {
		change.LongerOver, why = longerOver(ctx, locker, servers, m)
	}
	if !change.LongerOver && cfg.Timeout < 0 && rest > reach.LongWait {
		c.Note("new locks are bounded by %v from now on; quarantines go by %v until the locks of before are over, in %v at the latest (%s): give the same command again then, or with --locks-over if you know that they are", m.MaxTTL, m.LongerTTL, phrase.Tenths(rest), why)
		return m, nil
	}
	return locker.Change(ctx, change, tellWaits(c))
}

// tellWaits returns the callback with which a change says what it waits for.
func tellWaits(c *console.Console) func(what string, most time.Duration) {
	return func(what string, most time.Duration) { c.Note("%s", waits(what, most)) }
}

// longerOver reports whether no lock is held any more that lives longer than the set allows; if not, why it may be.
//
// A lock that is held has the votes of a quorum of the members, as the members and the quorum are now or were before
// the last change: no other change has come since, because each change waits for the locks that were counted before it.
// The members of two successive descriptions differ by one, so a majority of the present members has a node in common
// with each such quorum. The nodes that are listed here vote, before and after, so what they have forgotten is over;
// and they keep the present description, so no node here counts by an earlier one any more.
func longerOver(ctx context.Context, locker *redlock.Locker, servers []*redis.Options, m redlock.Members) (over bool, why string) {
	l, err := peek.Locks(ctx, locker, servers, listing.Query{Pattern: "*"}, true)
	if err != nil {
		return false, "the locks could not be listed"
	}
	listed := 0
	after := peek.Status(ctx, locker).Nodes
	for _, n := range l.Nodes {
		if n.Err == nil && slices.ContainsFunc(after, func(now redlock.NodeStatus) bool { return now.Node == n.Name && now.Err == nil }) {
			listed++
		}
	}
	if now := locker.Members(); now.Epoch != m.Epoch { // the locks may have been listed under another bound
		return false, fmt.Sprintf("the set was changed meanwhile: epoch %d", now.Epoch)
	}
	if 2*listed <= len(m.Nodes) {
		return false, "too few members vote and could be listed to tell whether a lock is held that lives for longer"
	}
	for _, s := range l.Found {
		longest := time.Duration(0)
		for _, n := range s.Nodes {
			if n.Token == "" || wire.Signed(n.Token) { // locks of other libraries do not follow the set
				longest = max(longest, n.TTL)
			}
		}
		if longest > m.MaxTTL {
			return false, fmt.Sprintf("the lock %q lives for another %v", s.Name, phrase.Tenths(longest))
		}
	}
	return true, ""
}
