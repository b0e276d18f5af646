package chaos

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// A mutant is the library with one thing broken, and the scenario that notices it. A mutant that
// survives means that this part of the library can break without notice: either the scenarios need
// more faults, or the part is not needed.
type mutant struct {
	name     string
	edits    []edit
	arena    string
	scenario string
	within   int // schedules, from the first one on: mostSchedules at most
}

// mostSchedules is how many schedules of its scenario a mutant may survive. What needs more is found by chance: then another
// scenario has to make its situation often.
const mostSchedules = 3000

// An edit replaces a piece of source that occurs once in its file.
type edit struct{ file, old, new string }

var mutants = []mutant{
	{"no drift", []edit{
		{"clock.go", "return ttl/100 + 2*time.Millisecond", "return 0"},
	}, "model", "calm", 200},
	{"no second look at the clock", []edit{
		{"acquire.go", "case validFor(r.sent, now, c.ttl, c.lk", "case validFor(r.sent, r.sent, c.ttl, c.lk"},
	}, "model", "sluggish clients", 500},
	{"a quorum is half of the nodes", []edit{
		{"quorum.go", "func majority(n int) int { return n/2 + 1 }", "func majority(n int) int { return n / 2 }"},
	}, "model", "calm", 500},
	{"one token for all attempts", []edit{
		{"acquire.go", "c.lk.newLock(c.acquisition, slot, c.lk.newToken(c.acquisition, c.trace.traceID()))", "c.lk.newLock(c.acquisition, slot, oneToken(c.lk))"},
		{"redlock.go", "func (lk *Locker) isClosing() bool {", `var tokens sync.Map

func oneToken(lk *Locker) string {
	token, _ := tokens.LoadOrStore(lk, lk.parts.Host.Token())
	return token.(string)
}

func (lk *Locker) isClosing() bool {`},
	}, "model", "partitions", 500},
	{"validity counts from the votes", []edit{
		{"acquire.go", "l.until = l.validUntil(sent)", "l.until = l.validUntil(now)"},
	}, "model", "sluggish clients", 500},
	{"an extension counts from its confirmation", []edit{
		{"extend.go", "l.until, l.confirmed = l.validUntil(r.sent), r.number\n", "l.until, l.confirmed = l.validUntil(now), r.number\n"},
	}, "model", "sluggish clients", 3000},
	{"an extension that is confirmed late counts from its confirmation", []edit{
		{"round.go", "l.until, l.confirmed = l.validUntil(r.sent), r.number //", "l.until, l.confirmed = l.validUntil(now), r.number //"},
	}, "model", "partitions", 1000},
	{"an extension needs no quorum", []edit{
		{"extend.go", "case decided == won, l.confirmed", "case decided == won, r.ballot.yes > 0, l.confirmed"},
	}, "model", "refusals", 3000},
	{"an extension without a script counts, whatever the answer", []edit{
		{"internal/wire/native.go", "if !a.Done || a.Broken > 0 || a.Err != nil || a.Failed", "if a.Failed"},
	}, "model", "refusals", 1000},
	{"a release without a script deletes any token", []edit{
		{"internal/testbed/model/plain.go", "case !there || e.token != c.Token:", "case !there || e.token != c.Token && c.Op == wire.Extend:"},
	}, "model", "paused writers", 200},
	{"an extension succeeds after the end", []edit{
		{"extend.go", "case left(l.until, now) <= 0:\n\t\t// The confirmation", "case false:\n\t\t// The confirmation"},
	}, "model", "suspended hosts", 1000},
	{"clean-up with the caller's context", []edit{
		{"acquire.go", "\tl.releaseAsync()\n", "\tif ctx.Err() == nil {\n\t\tl.releaseAsync()\n\t}\n"},
	}, "model", "long", 500},
	{"no clean-up after a refusal", []edit{
		{"acquire.go", "\tl.releaseAsync()\n", ""},
	}, "model", "calm", 500},
	{"only the network tells of the end", []edit{
		{"lock.go", "l.alarm = time.AfterFunc(left(l.until, l.locker.now()), l.ring)", "l.alarm = time.AfterFunc(time.Hour, l.ring)"},
	}, "model", "calm", 100},
	{"the alarm is not told of an extension", []edit{
		{"lock.go", "if rest := left(l.until, l.locker.now()); rest > 0 && l.endErr == nil {", "if rest := l.claim.TTL; left(l.until, l.locker.now()) > 0 && l.endErr == nil {"},
	}, "model", "calm", 500},
	{"a release after the end succeeds", []edit{
		{"lock.go", "\tif left(l.Until(), now) <= 0 {\n\t\treturn l.expire()\n\t}\n\tif first", "\tif first"},
	}, "model", "clients", 3000},
	{"an acquire without an answer was not carried out", []edit{
		{"internal/wire/reply.go", "case Held, Reserved, Stolen, Expired, Late:", "case Held, Reserved, Stolen, Expired, Late, Timeout, Unreachable:"},
	}, "model", "partitions", 1000},
	{"a release without an answer is done", []edit{
		{"internal/lane/conn.go", "case q.Op == wire.Release && !q.Reply.Status.SettlesRelease():", "case false:"},
	}, "model", "partitions", 1000},
	{"a release that a node owes an answer to is soon forgotten", []edit{
		{"internal/lane/request.go", "return now.Add(2 * c.TTL)", "return now.Add(c.TTL / 50)"},
	}, "model", "long", 1000},
	{"a release is owed for ever", []edit{
		{"internal/lane/request.go", "return now.Add(2 * c.TTL)", "return now.Add(1000 * time.Hour)"},
	}, "model", "a node without answers", 20},
	{"an acquire that was released is sent again to a server that did not know its script", []edit{
		{"internal/lane/conn.go", "\t\tif at != inFlight {\n\t\t\treturn nil\n\t\t}\n", ""},
	}, "model", "churn", 2000},
	{"an acquire of plain commands is sent again", []edit{
		{"internal/lane/conn.go", "if q.Step() == wire.Plain || q.reloads == maxReloads {", "if q.reloads == maxReloads {"},
	}, "model", "churn", 2000},
	{"a release may overtake its acquire", []edit{
		{"internal/testbed/model/link.go", "max(there, time.Until(l.arrives)+l.node.gap())", "there"},
		{"internal/testbed/model/link.go", "next := s.coming[0]", "next := m"},
	}, "model", "slow links", 2000},
	{"a node that may yet carry out a release over an old connection counts for extensions", []edit{
		{"round.go", "\t\tl.record(n).filled = never\n", "\t\tl.record(n).filled = filling\n"},
	}, "model", "late over old connections", 1000},
	{"a node that may yet carry out the acquire over an old connection counts for extensions", []edit{
		{"round.go", "if q.Step() == wire.Plain && q.Number > 0 &&", "if false &&"},
	}, "model", "late over old connections", 1000},
	{"an acquire that was under way when its connection ended counts", []edit{
		{"internal/lane/conn.go", "\t\t\tq.Read(nil, err)\n", "\t\t\tif q.Read(nil, err); q.Op == wire.Acquire {\n\t\t\t\tq.Reply = wire.Reply{Status: wire.Granted, Fence: q.Number, Mark: q.Mark}\n\t\t\t}\n"},
	}, "model", "minority", 500},
	{"hooks are called on the path", []edit{
		{"internal/aside/queue.go", "func (q *Queue) Add(class Class, name string, f func()) bool {\n", "func (q *Queue) Add(class Class, name string, f func()) bool {\n\tif name == \"Hooks.Unreleased\" || name == \"Hooks.RenewalRecovered\" || name == \"Hooks.Lost\" || name == \"Trace.End\" {\n\t\tf()\n\t\treturn true\n\t}\n"},
	}, "model", "slow hooks", 50},
	{"a release waits for a node for ever", []edit{
		{"lock.go", "r.wait(context.Background(), l.locker.nodeTimeout(l.claim.TTL))", "r.wait(context.Background(), time.Hour)"},
	}, "model", "hanging nodes", 500},
	{"what was denied stays denied", []edit{
		{"acquire.go", "if why == nil || c.ctx.Err() != nil {", "if why == nil || c.ctx.Err() != nil || try > 2 {"},
	}, "model", "minority", 500},
	{"renewals come too late", []edit{
		{"extend.go", "at := l.until.Add(l.locker.settings().drift(l.claim.TTL) - l.claim.TTL + l.claim.TTL/3)", "at := l.until.Add(l.claim.TTL)"},
	}, "model", "calm", 200},
	{"a renewal that failed is the last", []edit{
		{"internal/renew/renew.go", "\t\tnext = s.cfg.Now().Add(e.item.TTL() / 20)\n\t}\n\ts.again", "\t\te.item.Renewed(res)\n\t\treturn\n\t}\n\ts.again"},
		{"internal/renew/renew.go", "\t\ts.again(e, s.cfg.Now().Add(e.item.TTL()/20))\n", ""},
	}, "model", "a node without answers", 500},
	{"Close leaves the renewals running", []edit{
		{"internal/renew/renew.go", "\tclose(s.stop)\n\t<-s.ended\n", ""},
	}, "model", "calm", 10},

	{"a lock is broken when one node has confirmed it", []edit{
		{"break.go", "if r.decided() != won && (", "if !slices.Contains(r.answered(), true) && ("},
		{"break.go", "return noted >= view.Quorum\n", "return noted >= 1\n"},
		{"break.go", "case noted >= view.Quorum:", "case noted >= 1:"},
	}, "model", "broken by hand", 3000},
	{"a lock is broken, whatever its token is by then", []edit{
		{"break.go", "found = found || n.Token == b.handle.Token\n", "if n.Token != \"\" {\n\t\t\tb.handle.Token = n.Token\n\t\t}\n\t\tfound = found || n.Token == b.handle.Token\n"},
	}, "model", "broken by hand", 500},
	{"a token that is broken is extended", []edit{
		{"internal/testbed/model/scripts.go", "if n.isBroken(c.Token) {", "if n.isBroken(c.Token) && false {"},
		{"internal/testbed/model/plain.go", "case c.Op == wire.Extend && n.isBroken(c.Token):", "case c.Op == wire.Extend && n.isBroken(c.Token) && false:"},
	}, "model", "broken while extended", 500},

	// Fences, numbered by simpler rules.
	{"the fence is the largest number, and is not stored", []edit{
		{"fence.go", "if r.lock.claim.Fence = number; stored {", "if r.lock.claim.Fence = number; stored || true {"},
	}, "model", "vanishing locks", 3000},
	{"the fence is stored on fewer nodes than a quorum", []edit{
		{"fence.go", "return number, same >= r.ballot.need", "return number, same >= r.ballot.need-1"},
	}, "model", "vanishing locks", 2000},
	{"a grant takes the number that is proposed", []edit{
		{"internal/testbed/model/scripts.go", "number = max(min(max(c.Fence, now-clamp), now+clamp), count+1)", "number = max(c.Fence, 1)"},
		{"internal/testbed/model/scripts.go", "n.counts[name] = max(n.counts[name], number)", "n.counts[name] = number"},
	}, "model", "vanishing locks", 500},
	{"a grant counts on, whatever is proposed", []edit{
		{"internal/testbed/model/scripts.go", "number = max(min(max(c.Fence, now-clamp), now+clamp), count+1)", "number = count + 1"},
	}, "model", "wrong clocks", 2000},
	{"a node believes a client's clock", []edit{
		{"internal/testbed/model/scripts.go", "min(max(c.Fence, now-clamp), now+clamp)", "c.Fence"},
	}, "model", "wrong clocks", 2000},
	{"a counter has a TTL", []edit{
		{"internal/testbed/model/scripts.go", "\tn.counts[name] = max(n.counts[name], number)", "\tn.counts[name] = max(n.counts[name], number)\n\ttime.AfterFunc(100*time.Millisecond, func() { n.mu.Lock(); defer n.mu.Unlock(); delete(n.counts, name) })"},
	}, "model", "vanishing locks", 500},
	{"a number of the future is a vote", []edit{
		{"internal/vote/clocks.go", "if ahead < g.cfg.MaxNodeSkew+2*wire.Clamp {", "if ahead < g.cfg.MaxNodeSkew+2*wire.Clamp || true {"},
		{"internal/vote/answers.go", "b.Off = m.group.skew(&m.clock, now)", "b.Off = 0 * m.group.skew(&m.clock, now)"},
	}, "model", "poisoned nodes", 500},
	{"no concession to a majority that is ahead", []edit{
		{"fence.go", "\tif most <= a.ahead {\n", "\tif true {\n"},
	}, "model", "numbers of the future", 50},
	{"a node whose clock is known to be wrong counts", []edit{
		{"internal/vote/answers.go", "q.Latest = m.group.latest(&m.clock, q.Deadline); b.Off != 0 {", "q.Latest = m.group.latest(&m.clock, q.Deadline); false {"},
	}, "model", "a clock that was wrong", 50},

	// Amnesia and clocks.
	{"no quarantine", []edit{
		{"options.go", "opts.Quarantine < most+opts.drift(most):", "false:"},
		{"options.go", "\tswitch room := ", "\topts.Quarantine = -1\n\tswitch room := "},
	}, "model", "forgetful nodes", 500},
	{"a quarantine is half of what it should be", []edit{
		{"internal/vote/clocks.go", "max(g.cfg.Quarantine, longest+g.cfg.DriftOf(longest))", "max(g.cfg.Quarantine, longest+g.cfg.DriftOf(longest)) / 2"},
	}, "model", "forgetful nodes", 3000},
	{"the node's marker is not checked", []edit{
		{"internal/testbed/model/scripts.go", "case c.Mark != \"\" && c.Mark != n.marker:", "case false:"},
	}, "model", "forgetful nodes", 1000},
	{"plain commands: the number need not be stored", []edit{
		{"internal/wire/plain.go", "case p.Advanced != 1:", "case false:"},
	}, "model", "calm", 3000},
	{"plain commands: another client may have the key", []edit{
		{"internal/wire/plain.go", "case !p.Set && p.Holder != token:", "case false:"},
		{"internal/wire/plain.go", "case p.Holder != token:", "case false:"},
	}, "model", "calm", 100},
	{"plain commands: the node's marker is not checked", []edit{
		{"internal/wire/plain.go", "case mark != \"\" && p.Marker != mark:", "case false:"},
	}, "model", "forgetful nodes", 3000},
	{"plain commands: there may be a queue", []edit{
		{"internal/wire/plain.go", "case p.Queues > 0:", "case false:"},
	}, "model", "waiting", 3000},
	{"plain commands: names may be paths", []edit{
		{"acquire.go", ` || c.separator != ""`, ""},
	}, "model", "calendar of kinds", 20},
	{"plain commands: the node's time is not looked at", []edit{
		{"internal/wire/plain.go", "Reply{Status: Granted, Fence: number, Time: p.Time,", "Reply{Status: Granted, Fence: number,"},
		{"internal/wire/plain.go", "case p.Time > latest:", "case false:"},
	}, "model", "clocks set a little", 1000},
	{"a node that shows another marker is not joined again", []edit{
		{"internal/lane/request.go", "(q.Reply.Err == wire.ErrForgot || q.Reply.Err", "(q.Reply.Err"},
	}, "model", "forgetful nodes", 50},
	{"a node that has no vote is counted all the same", []edit{
		{"internal/vote/answers.go", "case k.Rest > 0 || k.after > 0:", "case k.Rest > 0 && k.after < 0:"},
	}, "model", "forgetful nodes", 500},
	{"the node's clock alone says how old a marker is", []edit{
		{"internal/vote/node.go", "age = max(0, min(byNode, byWriter))", "age = max(0, max(byNode, byNode-byWriter+byWriter))"},
	}, "model", "boot", 2000},
	{"a marker of the future stays", []edit{
		{"internal/testbed/model/store.go", " || mark.Born > now+slack:", ":"},
	}, "model", "boot", 2000},
	{"a quarantine goes by MaxTTL alone while that changes", []edit{
		{"internal/wire/description.go", "Milliseconds(max(d.MaxTTL, d.Other))", "Milliseconds(d.MaxTTL)"},
	}, "model", "settings that disagree", 2000},
	{"the locks of before are not waited for when MaxTTL gets shorter", []edit{
		{"internal/set/change.go", "if over || next.Longest() >= d.Longest() {", "if true {"},
	}, "model", "settings that disagree", 2000},
	{"a lock may live for longer than the set allows", []edit{
		{"keys.go", "return o.most > 0 && ttl > o.most }", "return false }"},
		{"internal/vote/answers.go", "q.By == nil || q.Claim.TTL <= wire.Milliseconds(q.By.MaxTTL) {", "q.By == nil || q.Claim.TTL > 0 {"},
	}, "model", "settings that disagree", 2000},
	{"the nodes' clocks are not checked", []edit{
		{"internal/vote/node.go", "	if step > 0 {", "	if step < 0 {"},
	}, "model", "stepping clocks", 500},
	{"a request may be as late as it likes", []edit{
		{"internal/testbed/model/scripts.go", "if c.Latest > 0 && now > c.Latest {", "if false {"},
	}, "model", "ghosts", 500},
	{"no check after a machine was suspended", []edit{
		{"internal/renew/renew.go", "	s.check(now)\n", ""},
	}, "model", "suspended hosts", 500},

	// Waiting.
	{"a dead waiter keeps its place for ever", []edit{
		{"internal/wire/queue.go", "if rest < 0 || rest > MaxLease {\n\t\treturn 0", "if rest < 0 || rest > MaxLease {\n\t\treturn 1000"},
	}, "model", "deaf waiters", 200},
	{"no waiter looks unless it is called", []edit{
		{"internal/waitlist/waiter.go", "timer := time.NewTimer(p.Longest)", "timer := time.NewTimer(p.Longest + time.Hour)"},
	}, "model", "deaf waiters", 100},
	{"a client that does not wait goes before the waiters", []edit{
		{"internal/wire/queue.go", "if ticket < 0 {", "if ticket <= 0 {"},
	}, "model", "kinds waiting", 200},
	{"a first attempt is in no queue", []edit{
		{"acquire.go", "c.attempt(slot, queues)", "c.attempt(slot, map[bool]*waitlist.Waiter{true: queues}[try > 0])"},
	}, "model", "waiting", 100},
	{"a waiter has a ticket before it knows the nodes' time", []edit{
		{"acquire.go", "if !w.Ready() {", "if false {"},
	}, "model", "newcomers", 500},
	{"a local queue is last in, first out", []edit{
		{"internal/waitlist/waitlist.go", "close(q.waiters[0].turn)", "last := len(q.waiters) - 1\n\t\tq.waiters[0], q.waiters[last] = q.waiters[last], q.waiters[0]\n\t\tclose(q.waiters[0].turn)"},
	}, "model", "waiting", 100},

	// Clients that ask once.
	{"a split vote ends a try", []edit{
		{"wait.go", "\treturn r.Contested()\n", "\treturn r.Contested() && r.N == 0\n"},
	}, "model", "tries at once", 200},
	{"the first attempt on new nodes is by plain commands", []edit{
		{"acquire.go", "\t\t\tc.lk.notPlain(c.key, now)\n", ""},
	}, "model", "tries on new nodes", 2000},
	{"a try leaves it to all that it sees", []edit{
		{"wait.go", "behind && refusal.HeldBefore(c.began, &before):", "behind:"},
		{"wait.go", "!seen && before.HeldBefore(c.began, &before)", "!seen && before.FreeSlot() == 0"},
	}, "model", "tries at once", 500},
	{"a try for a folder waits for the readers below it", []edit{
		{"wait.go", "!seen && before.HeldBefore(c.began, &before)", "false"},
	}, "model", "readers below a folder", 500},
	{"a client that is far away is taken for a holder", []edit{
		{"wait.go", "late && try > 0 && refusal", "(late || true) && try > 0 && refusal"},
	}, "model", "tries at once", 500},
	{"a client that was seen with a quorum gives way", []edit{
		{"wait.go", "me != nil && !seen && refusal", "me != nil && (!seen || true) && refusal"},
	}, "model", "tries at once", 500},
	{"the tokens of two attempts make a quorum", []edit{
		{"internal/waitlist/refusal.go", "if nodes[n.Holder]++; nodes[n.Holder] >= r.Need {", "party := n.Holder\n\t\t\tif c, is := wire.ParseContender(party); is {\n\t\t\t\tparty = c.Waiter()\n\t\t\t}\n\t\t\tif nodes[party]++; nodes[party] >= r.Need {"},
	}, "model", "tries at once", 500},

	// The calls of a release.
	{"a release calls nobody", []edit{
		{"internal/testbed/model/scripts.go", "\t\tn.wake(c.Keys[i], c.Modes[i], c.Slot)\n", "\t\t_ = i\n"},
	}, "model", "calls", 100},
	{"a waiter that leaves calls nobody", []edit{
		{"internal/testbed/model/waiting.go", "\t\tn.wake(key, c.Modes[i], 0)\n\t\tleft = 1\n", "\t\t_ = i\n\t\tleft = 1\n"},
	}, "model", "calls", 500},
	{"a called waiter overtakes the queue", []edit{
		{"internal/wire/queue.go", "case e.Waiter == waiter, ticket > 0 && before(ticket, waiter, e):", "case e.Waiter == waiter, ticket > 0:"},
	}, "model", "waiting", 100},
	{"a waiter that has the lock stays in the queues of the others", []edit{
		{"internal/waitlist/waiter.go", "if s := &w.nodes[i]; s.refused || s.voteless || s.yields || !held {", "if _ = i; !held {"},
		{"internal/waitlist/waiter.go", "\tif late {\n", "\tif late && !w.held {\n"},
	}, "model", "calls", 500},

	// Locks that are handed on.
	{"a lock is attached without a quorum", []edit{
		{"handle.go", "if r.decided() != won {", "if r.ballot.yes == 0 {"},
	}, "model", "handed on", 2000},
	{"an attached lock counts from its confirmation", []edit{
		{"handle.go", "l.until = l.validUntil(begun)", "l.until = l.validUntil(now)"},
	}, "model", "handed on", 2000},

	// Kinds of locks.
	{"no mark on the folders above", []edit{
		{"keys.go", "append(append(keys, above...), name)", "append(keys, name)"},
	}, "model", "kinds", 200},
	{"readers of a folder are not in the way of writers below it", []edit{
		{"internal/wire/mode.go", "ModeS: \"xlw\"", "ModeS: \"xl\""},
		{"internal/wire/mode.go", "ModeIX: \"xsl\"", "ModeIX: \"xl\""},
	}, "model", "kinds", 500},
	{"readers share a deadline, that of the last", []edit{
		{"internal/testbed/model/scripts.go", "e.expires = max(e.expires, until)", "e.expires = until"},
	}, "model", "kinds", 2000},
	{"the slots are counted on each node", []edit{
		{"keys.go", "c.Keys[len(c.Keys)-1] += strconv.FormatInt(slot, 10)", "c.Keys[len(c.Keys)-1] += c.Token"},
		{"internal/testbed/model/scripts.go", "\t\tswitch {\n\t\tcase err != nil:\n\t\t\treturn 0, nil, err\n\t\tcase h.mine:\n\t\t\tmine++\n", `		taken := 0
		for _, m := range n.keys[key].set {
			if m.mode == wire.ModeSlots && m.until >= n.now() {
				taken++
			}
		}
		if c.Modes[i] == wire.ModeSlots && !h.mine && taken >= c.Slots {
			h.who = "others"
		}
		switch {
		case err != nil:
			return 0, nil, err
		case h.mine:
			mine++
`},
	}, "model", "kinds", 1000},
	{"a reader goes before waiting writers", []edit{
		{"internal/wire/queue.go", "case MustQueueBehind(mode, e.Mode):", "case mode != ModeS && mode != ModeIS && MustQueueBehind(mode, e.Mode):"},
	}, "model", "kinds waiting", 200},
	{"the fence of a folder knows nothing of what lies below it", []edit{
		{"internal/testbed/model/scripts.go", "count = max(count, n.counts[below(key)])", "count = max(count, 0)"},
	}, "model", "kinds", 500},
	{"a lock with several keys is granted if the last of them is free", []edit{
		{"internal/testbed/model/scripts.go", "case h.there:\n\t\t\tif err := n.enter(c)", "case h.there && i == len(c.Keys)-1:\n\t\t\tif err := n.enter(c)"},
	}, "model", "kinds", 200},
	{"only one of several names is locked", []edit{
		{"keys.go", "names = append(names, name)\n", "names = append(names, name)[:1]\n"},
	}, "model", "kinds", 200},

	// Members that change.
	{"an extension counts, whatever description the node has by then", []edit{
		{"internal/vote/answers.go", "q.Op == wire.Extend && !stays(q):", "q.Op == wire.Extend && q.Op != wire.Extend:"},
	}, "model", "rival operators", 3000},
	{"a node grants, whatever description it has", []edit{
		{"internal/testbed/model/scripts.go", "case c.Mark != \"\" && c.Mark != n.marker:", "case c.Mark != \"\" && !alike(c.Mark, n.marker):"},
		{"internal/testbed/model/scripts.go", "// count raises a counter", `func alike(a, b string) bool {
	one, ok1 := wire.ParseMarker(a)
	other, ok2 := wire.ParseMarker(b)
	return ok1 && ok2 && one.Same(other)
}

// count raises a counter`},
		{"internal/wire/plain.go", "case mark != \"\" && p.Marker != mark:", "case mark != \"\" && !alike(p.Marker, mark):"},
		{"internal/wire/plain.go", "// Read judges the answer", `func alike(a, b string) bool {
	one, ok1 := ParseMarker(a)
	other, ok2 := ParseMarker(b)
	return ok1 && ok2 && one.Same(other)
}

// Read judges the answer`},
	}, "model", "rival operators", 3000},
	{"a vote counts, whatever the epoch", []edit{
		{"internal/vote/keeps.go", "case d != nil && kept.Same(d):", "case d != nil && kept.Description != nil && kept.Set == d.Set:"},
		{"internal/vote/answers.go", "q.Op == wire.Extend && !stays(q):", "q.Op == wire.Extend && q.Op != wire.Extend:"},
	}, "model", "rival operators", 3000},
	{"the next change does not wait", []edit{
		{"internal/set/change.go", "	case len(d.Former) == 0:", "	default:"},
	}, "model", "rival operators", 3000},
	{"a minority chooses the next description", []edit{
		{"internal/set/choice.go", "need: len(v.nodes)/2 + 1}", "need: 1}"},
	}, "model", "rival operators", 3000},
	{"a node promises nothing", []edit{
		{"internal/testbed/model/store.go", "if ballot > now.promised || ballot == now.promised && value != \"\" {", "if true {"},
	}, "model", "rival operators", 3000},
	{"a later proposer keeps its own description", []edit{
		{"internal/set/choice.go", "if a.taken != nil && a.Taken > best &&", "if false && a.Taken > best &&"},
	}, "model", "rival operators", 3000},
	{"a node takes an earlier description back", []edit{
		{"internal/testbed/model/store.go", "n.kept.At() < d.Epoch:", "n.kept.At() != d.Epoch:"},
	}, "model", "rival operators", 3000},
	{"two members change at once", []edit{
		{"members.go", "then.Members = append(then.Members, c.Add)", "then.Members = append(then.Members[min(2, len(then.Members)-1):], c.Add)"},
	}, "model", "rival operators", 3000},
	{"a lock has places for eight nodes more than it began with", []edit{
		{"internal/lane/request.go", "c.places = make(Places, max(n, 1))", "c.places = make(Places, n+8)"},
		{"internal/lane/request.go", "(before == nil || before.ended.Load()) &&", "before == nil &&"},
		{"internal/lane/request.go", "	for last := &ps[len(ps)-1]; !last.next.CompareAndSwap(nil, p); {\n\t\tlast = last.next.Load()\n\t}\n", ""},
	}, "model", "rooms of lanes", 200},
	{"a program that is refused hears of no change", []edit{
		{"internal/vote/answers.go", "again = again || refused && m.Marked() &&", "again = again || false && m.Marked() &&"},
	}, "model", "rooms of lanes", 200},
	{"a later description is believed on one node's word", []edit{
		{"internal/wire/believed.go", "case 2*keep > n:", "case keep > 0:"},
	}, "model", "a minority keeps a later description", 500},
	{"a program that starts believes one node", []edit{
		{"internal/wire/believed.go", "case 2*keep > n:", "case 2*keep > n || known == nil && keep > 0:"},
	}, "model", "a minority keeps a later description", 500},
	{"a program that knows no description does not ask again", []edit{
		{"internal/set/members.go", "case !fresh && known == nil && !again:", "case !fresh && known == nil && !again && false:"},
	}, "model", "started before the set", 500},
	{"a member that was removed and has lost its data is waited for", []edit{
		{"internal/wire/believed.go", "(known != nil || d.Has(w.Name))", "d.Has(w.Name)"},
	}, "model", "members", 3000},
	{"a node that keeps a description has lost nothing", []edit{
		{"internal/vote/node.go", "\t\treturn m.Marked()\n\t})", "\t\treturn m.Marked() && mark.Kept.Description == nil\n\t})"},
	}, "model", "a snapshot of an earlier set", 1000},
	{"a node that comes is told by those alone that have heard of a majority", []edit{
		{"internal/testbed/model/store.go", " || n.comes(d)):", "):"},
	}, "model", "a snapshot of an earlier set", 3000},
	{"a set that was changed heals like one that was not", []edit{
		{"internal/set/members.go", "all && (now || !rival) && (s.known.Epoch == 1 || 2*keep == len(v.nodes))", "all && (now || !rival)"},
		{"internal/set/members.go", "s.known != nil && last.Epoch == 1 {", "s.known != nil {"},
	}, "model", "a set that is restored", 3000},
	{"a member that keeps no description votes", []edit{
		{"internal/vote/keeps.go", "case d == nil && !m.cfg.Described:", "case d == nil && !m.cfg.Described, d != nil && kept.Description == nil:"},
		{"internal/set/members.go", "case 2*none <= len(members):", "case 2*none <= len(members) || s.known != nil:"},
	}, "model", "a set that is restored", 200},
	{"a node of another set becomes a member", []edit{
		{"internal/set/change.go", "case t.Set != known.Set:", "case t.Set == \"\":"},
	}, "model", "sets that move", 500},
	{"a node vouches only for what it keeps", []edit{
		{"internal/wire/believed.go", "case w.Follows(d):", "case w.Same(d):"},
	}, "model", "sets that move", 500},

	// What is promised toward clients of other libraries.
	{"plain commands: a foreign client may have the key", []edit{
		{"internal/wire/plain.go", "case !p.Set && p.Holder != token:", "case !p.Set && p.Holder != token && Signed(p.Holder):"},
		{"internal/wire/plain.go", "case p.Holder != token:", "case p.Holder != token && (p.Holder == \"\" || Signed(p.Holder)):"},
	}, "model", "foreign clients", 200},
	{"a foreign lock is waited for to the end of its TTL", []edit{
		{"internal/waitlist/refusal.go", "d = min(d, Backoff(try, ttl, jitter)) // such clients send no message", "d = r.FreeIn() + time.Millisecond"},
	}, "model", "waiting among foreign clients", 200},
	{"an extension takes the place of a foreign token", []edit{
		{"internal/testbed/model/plain.go", "case !there || e.token != c.Token:", "case !there || e.token != c.Token && (c.Op != wire.Extend || wire.Signed(e.token)):"},
		{"internal/testbed/model/scripts.go", "\t\tdefault:\n\t\t\treturn h.list(), nil\n\t\t}\n\t}\n\tif n.readOnly {", "\t\tcase wire.Signed(h.who):\n\t\t\treturn h.list(), nil\n\t\t}\n\t}\n\tif n.readOnly {"},
	}, "model", "foreign clients and forgetful nodes", 500},
	{"a node that was filled up counts at once", []edit{
		{"round.go", "return filled == 0 || filled < last", "_ = last\n\treturn filled >= 0"},
	}, "model", "foreign clients and forgetful nodes", 3000},

	// The steps of the nodes: the scripts themselves.
	{"a release deletes any lock", []edit{
		{"internal/script/release_usual.lua", "if redis.pcall('GETRANGE', key, '0', $lastOfToken) == ARGV[1] then", "if redis.pcall('GET', key) then"},
	}, "miniredis", "calm", 100},
	{"a release calls nobody, in the script", []edit{
		{"internal/script/release_usual.lua", "redis.pcall('PUBLISH', $wakeChannel .. process, waiter)", ""},
	}, "miniredis", "calls", 20},
	{"an acquire takes what is held", []edit{
		{"internal/script/acquire_usual.lua", "there == 0\n", "there ~= 1\n"},
		{"internal/script/acquire_usual.lua", "elseif there > 1 then", "elseif false then"},
	}, "miniredis", "calm", 20},
	{"an acquire keeps its lock for ever", []edit{
		{"internal/script/acquire_usual.lua", "redis.call('SET', key, ARGV[1], 'PX', ARGV[2])", "redis.call('SET', key, ARGV[1])"},
	}, "miniredis", "clients", 100},
	{"an acquire that comes twice reads its own lock as taken", []edit{
		{"internal/script/acquire.lua", "if who == true then\n    mine = mine + 1", "if who == true then\n    return refuse({1000, token, clock()})"},
	}, "miniredis", "repeats", 600},
	{"an acquire does not look at the node's marker", []edit{
		{"internal/script/acquire_usual.lua", "(ARGV[5] == '' or redis.call('MGET', $marker)[1] == ARGV[5])", "true"},
		{"internal/script/acquire.lua", "if marker and marker ~= ARGV[5] then", "if false then"},
	}, "miniredis", "forgetful nodes", 500},
	{"an acquire may be as late as it likes, in the script", []edit{
		{"internal/script/acquire_usual.lua", "if latest > 0 and now > latest then", "if false then"},
		{"internal/script/acquire.lua", "if latest > 0 and clock() > latest then", "if false then"},
	}, "miniredis", "ghosts", 300},
	{"a dead waiter keeps its place for ever, in the script", []edit{
		{"internal/script/queue.lua", "local rest = waiter and math.ceil(deadline - clock() / 1000) or 0", "local rest = waiter and 1000 or 0"},
	}, "miniredis", "deaf waiters", 20},
	{"a client that does not wait goes before the waiters, in the script", []edit{
		{"internal/script/queue.lua", "elseif ticket > 0 and (ticket < lower or ticket == lower and waiter < who) then", "elseif ticket <= 0 or ticket < lower or ticket == lower and waiter < who then"},
	}, "miniredis", "kinds waiting", 40},
	{"a node counts nothing", []edit{
		{"internal/script/acquire_usual.lua", "if ARGV[9] == 'x' then", "if false then"},
		{"internal/script/acquire.lua", "count = math.max(count, has[i] or 0)", ""},
	}, "miniredis", "kinds", 20},
	{"each name has a counter of its own", []edit{
		{"internal/script/acquire_usual.lua", "below < number and redis.call('ZADD', $fences,", "below < number and redis.call('ZADD', key .. ':numbers',"},
	}, "miniredis", "new names", 5},
	{"readers of a folder are not in the way of writers below it, in the script", []edit{
		{"internal/script/kinds.lua", "return string.find($conflicts,", "return one .. other ~= 'sw' and one .. other ~= 'ws' and string.find($conflicts,"},
	}, "miniredis", "kinds", 100},
	{"a reader's release is that of all readers, in the script", []edit{
		{"internal/script/drop.lua", "gone = redis.pcall('ZREM', key, token)", "gone = redis.pcall('DEL', key)"},
	}, "miniredis", "kinds", 100},
	{"a set of tokens lives as long as its first one, in the script", []edit{
		{"internal/script/hold.lua", "if not left or left < ttl + 0 then", "if not left then"},
		{"internal/script/extend.lua", "math.max(left[i], ARGV[2] + 0)", "left[i]"},
	}, "miniredis", "kinds", 100},
	{"the fence of a folder knows nothing of what lies below it, in the script", []edit{
		{"internal/script/acquire.lua", "count = math.max(count, redis.call('ZSCORE', $belows, ARGV[10 + i]) or 0)", ""},
	}, "miniredis", "kinds", 100},

	// What lies between the nodes, and beside the locks.
	{"a connection that was unused is not looked at", []edit{
		{"internal/redisnode/standing.go", "|| !s.stands(conn, time.Since(s.last)) {", "|| false && !s.stands(conn, time.Since(s.last)) {"},
	}, "miniredis", "idle cuts", 10},
	{"a connection that was unused for long gets no PING", []edit{
		{"internal/redisnode/standing.go", "return saw != broken && s.pings(conn)", "_ = s.pings\n	return saw != broken"},
	}, "miniredis", "idle cuts", 20},
	{"any sorted set is one of locks", []edit{
		{"internal/script/kinds.lua", "elseif left == -1 or not string.find(first[1], $signature) then", "elseif left == -1 then"},
	}, "miniredis", "big foreign values", 40},
	{"any sorted set is a queue", []edit{
		{"internal/script/queue.lua", "if most == 1 and not string.find(entries[1] or '', $signature) then", "if not entries[1] then"},
	}, "miniredis", "big foreign values", 40},
	{"what has the key of a lock is read whole", []edit{
		{"internal/redisnode/plain.go", "w.Begin(\"getrange\").String(key).Int(0).Int(wire.MostOfToken - 1).End()", "w.Begin(\"get\").String(key).End()"},
	}, "miniredis", "big foreign values", 40},
}

var (
	update  = flag.Bool("update", false, "write the tables in docs/chaos.md and testdata/mutants.md anew")
	convict = flag.String("mutants", "", "build mutants, and have their scenarios convict them: `all`, or of those that one rule convicts in one arena the one that it convicts \"first\"")
)

// mutantsFile has the table of mutants.
var mutantsFile = filepath.Join("testdata", "mutants.md")

// TestMutantsApply: the edits fit the source as it is, and the table has each mutant. In the arena model it has the schedule
// that notices, one of the first mostSchedules.
func TestMutantsApply(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(mutantsFile)
	if err != nil {
		t.Fatal(err)
	}
	dir, known := t.TempDir(), knownMutants(t)
	for _, m := range mutants {
		schedule, _ := strconv.Atoi(known[m.name].schedule) // 0 on miniredis: it is not always the same
		if m.within > mostSchedules || schedule > m.within || schedule == 0 && m.arena == Model.Name {
			t.Errorf("%s is noticed within %d schedules, and in schedule %d: it may survive %d", m.name, m.within, schedule, mostSchedules)
		}
		if _, err := m.overlay(root, dir); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
		if row := fmt.Sprintf("\n| %s | %s | %s |", m.name, m.scenario, m.arena); !*update && strings.Count(string(text), row) != 1 {
			t.Errorf("%s does not have the row %q: make tables", mutantsFile, row)
		}
	}
}

// TestMutantsCompile checks the types of each package that a mutant changes. A mutant that does not compile convicts
// nobody, and only a run of all mutants would notice.
func TestMutantsCompile(t *testing.T) {
	need.Full(t)
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	list := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles", "./...")
	list.Dir = root
	text, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	type pkg struct {
		ImportPath, Dir, Export string
		GoFiles                 []string
	}
	byPath, byDir := make(map[string]pkg), make(map[string]pkg)
	for all := json.NewDecoder(bytes.NewReader(text)); all.More(); {
		var p pkg
		if err := all.Decode(&p); err != nil {
			t.Fatal(err)
		}
		byPath[p.ImportPath], byDir[p.Dir] = p, p
	}
	fset := token.NewFileSet()
	others := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(byPath[path].Export) })
	for _, m := range mutants {
		replaced, err := m.apply(root)
		if err != nil {
			continue // TestMutantsApply says so
		}
		for changed := range replaced {
			p := byDir[filepath.Dir(changed)]
			var files []*ast.File
			for _, name := range p.GoFiles {
				var source any // nil: as it is
				if edited, ok := replaced[filepath.Join(p.Dir, name)]; ok {
					source = edited
				}
				file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), source, parser.SkipObjectResolution)
				if err != nil {
					t.Errorf("%s: %v", m.name, err)
				}
				files = append(files, file)
			}
			if _, err := (&types.Config{Importer: others}).Check(p.ImportPath, fset, files, nil); err != nil && filepath.Ext(changed) == ".go" {
				t.Errorf("%s: %v", m.name, err)
			}
		}
	}
}

// TestMutants builds each mutant and runs its scenario until the judge convicts it. The model arena
// convicts in the same schedule every time, so the test begins with the schedule that the document has.
// A change of the library can make another one of it: then the test searches for the first schedule that
// convicts, and -update writes that one.
func TestMutants(t *testing.T) {
	if *convict == "" && !*update {
		need.Skip(t, "of mutants", "make mutants runs them")
	}
	if !*update && *convict != "all" && *convict != "first" {
		t.Fatalf("-mutants is %q, neither all nor first", *convict)
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	known := knownMutants(t)
	first := make(map[[2]string]mutant) // by arena and rule: the one that the fewest schedules convict
	schedules := func(m mutant) int { n, _ := strconv.Atoi(known[m.name].schedule); return n }
	for _, m := range mutants {
		by := [2]string{m.arena, known[m.name].rule}
		if best, ok := first[by]; !ok || schedules(m) < schedules(best) {
			first[by] = m
		}
	}
	rows := make([]string, len(mutants))
	t.Run("convict", func(t *testing.T) {
		for i, m := range mutants {
			if *convict == "first" && first[[2]string{m.arena, known[m.name].rule}].name != m.name {
				continue // the night has it
			}
			t.Run(m.name, func(t *testing.T) {
				t.Parallel()
				row, err := m.convict(t, root, t.TempDir(), known[m.name].schedule)
				if err != nil {
					t.Error(err)
				}
				rows[i] = row
			})
		}
	})
	if !t.Failed() && !slices.Contains(rows, "") { // only some mutants were run
		document(t, "mutants", "| What is broken | Scenario | Arena | Rule | Schedules |\n|---|---|---|---|---|\n"+strings.Join(rows, ""))
	}
}

// apply returns the edited files, by their paths.
func (m *mutant) apply(root string) (map[string][]byte, error) {
	replaced := make(map[string][]byte)
	for _, e := range m.edits {
		path := filepath.Join(root, e.file)
		source, ok := replaced[path]
		if !ok {
			var err error
			if source, err = os.ReadFile(path); err != nil {
				return nil, err
			}
		}
		if n := bytes.Count(source, []byte(e.old)); n != 1 {
			return nil, fmt.Errorf("%s has %q %d times, not once: adapt the mutant to the source", e.file, e.old, n)
		}
		replaced[path] = bytes.Replace(source, []byte(e.old), []byte(e.new), 1)
	}
	return replaced, nil
}

// overlay writes the edited files to dir, with an overlay file for the compiler, which uses them instead of the
// originals.
func (m *mutant) overlay(root, dir string) (file string, err error) {
	replaced, err := m.apply(root)
	if err != nil {
		return "", err
	}
	var overlay struct{ Replace map[string]string }
	overlay.Replace = make(map[string]string)
	for path, source := range replaced {
		changed := filepath.Join(dir, fmt.Sprint(len(overlay.Replace), filepath.Base(path)))
		if err := os.WriteFile(changed, source, 0o600); err != nil {
			return "", err
		}
		overlay.Replace[path] = changed
	}
	list, err := json.Marshal(overlay)
	if err != nil {
		return "", err
	}
	file = filepath.Join(dir, "overlay.json")
	return file, os.WriteFile(file, list, 0o600)
}

// A conviction is what the document's table says of a mutant.
type conviction struct {
	rule     string
	schedule string // one that notices; "": it is not always the same
}

// knownMutants returns the document's table.
func knownMutants(t *testing.T) map[string]conviction {
	text, err := os.ReadFile(mutantsFile)
	if err != nil {
		t.Fatal(err)
	}
	known := make(map[string]conviction)
	for _, row := range regexp.MustCompile(`(?m)^\| (.+) \| .+ \| (?:model|miniredis) \| (.+) \| (?:(\d+)|≤ \d+) \|$`).FindAllStringSubmatch(string(text), -1) {
		known[row[1]] = conviction{row[2], row[3]}
	}
	return known
}

// convict builds the mutant and searches for a schedule that convicts it. The search begins with the known schedule, if
// that is not "". The result is the mutant's row in the table.
func (m *mutant) convict(t *testing.T, root, dir, known string) (string, error) {
	file, err := m.overlay(root, dir)
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "convict")
	// Whatever imports what was edited is compiled again: without inlining, and without
	// what a debugger needs, that takes half of the time.
	build := exec.CommandContext(t.Context(), "go", "build", "-race=false", "-ldflags=-s -w", "-gcflags=github.com/quorumlock/redlock/...=-dwarf=false -l",
		"-overlay", file, "-o", binary, "./internal/convict")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%v: %v\n%s", build.Args, err, out)
	}
	noticed := ""
	if known != "" {
		noticed, err = m.run(t, binary, known, known)
	}
	if err == nil && noticed == "" {
		noticed, err = m.run(t, binary, "1", strconv.Itoa(m.within))
	}
	if err != nil {
		return "", err
	}
	if noticed == "" {
		return "", fmt.Errorf("%d schedules of %q in the arena %s have not noticed", m.within, m.scenario, m.arena)
	}
	number, rest, _ := strings.Cut(noticed, "\t")
	rule, text, _ := strings.Cut(rest, "\t")
	t.Logf("%s: %s, schedule %s: %s: %s", m.name, m.scenario, number, rule, strings.TrimSpace(text))
	switch {
	case m.arena != Model.Name:
		number = fmt.Sprint("≤ ", m.within) // the order of go-redis's goroutines varies
	case known != "" && known != number && !*update:
		t.Logf("%s has schedule %s, which does not notice any more: make tables", mutantsFile, known)
		number = known
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s |\n", m.name, m.scenario, m.arena, rule, number), nil
}

// run carries out the mutant's schedules from one number to another, and returns what the program prints of the first
// that convicts it; "": none does.
func (m *mutant) run(t *testing.T, binary, from, to string) (string, error) {
	run := exec.CommandContext(t.Context(), binary, m.arena, m.scenario, from, to)
	run.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=400")
	out, err := run.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%v: %v\n%s", run.Args, err, out)
	}
	return string(out), nil
}
