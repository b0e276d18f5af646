package operate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/console"
	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/cmd/redlock/internal/explain"
	"github.com/quorumlock/redlock/cmd/redlock/internal/flags"
	"github.com/quorumlock/redlock/cmd/redlock/internal/peek"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
	"github.com/quorumlock/redlock/cmd/redlock/internal/proc"
	"github.com/quorumlock/redlock/cmd/redlock/internal/reach"
)

// A prepareConfig is the command line of redlock prepare.
type prepareConfig struct {
	reach.Flags
	noWait bool
	quorum bool // a quorum of votes is enough
	json   bool
	fresh  bool     // nobody can hold a lock on these nodes yet
	reset  []string // --reset-fences: nodes whose fences are ahead of the time
}

// parsePrepare reads the arguments of redlock prepare.
func parsePrepare(args []string) (*prepareConfig, error) {
	cfg := &prepareConfig{Flags: reach.Defaults}
	f := flags.New("prepare")
	cfg.AddNodes(f)
	cfg.AddTTL(f)
	cfg.AddMaxTTL(f)
	cfg.AddTimeout(f)
	f.Toggle("no-wait", "", &cfg.noWait)
	f.Toggle("quorum", "", &cfg.quorum)
	f.Toggle("fresh", "", &cfg.fresh)
	f.Toggle("json", "", &cfg.json)
	f.Value("reset-fences", "", func(value string) error {
		cfg.reset = append(cfg.reset, strings.Split(value, ",")...)
		return nil
	})
	rest, err := f.Parse(args)
	switch {
	case err != nil:
		return nil, err
	case len(rest) > 0:
		return nil, exit.Fail(exit.Usage, "see redlock help prepare", "prepare takes flags only, and was given %q", rest[0])
	case cfg.noWait && f.Changed("timeout"):
		return nil, exit.Fail(exit.Usage, "--timeout 0s asks once whether all nodes vote", "--no-wait and --timeout do not go together")
	case cfg.noWait && cfg.quorum:
		return nil, exit.Fail(exit.Usage, "--no-wait waits for no node", "--no-wait and --quorum do not go together")
	case cfg.quorum && f.Changed("reset-fences"):
		return nil, exit.Fail(exit.Usage, "the fences are reset when the nodes vote again", "--quorum and --reset-fences do not go together")
	case cfg.fresh && f.Changed("reset-fences"):
		return nil, exit.Fail(exit.Usage, "new nodes have no fences", "--fresh and --reset-fences do not go together")
	case cfg.noWait && f.Changed("reset-fences"):
		return nil, exit.Fail(exit.Usage, "the fences are reset when the nodes vote again", "--no-wait and --reset-fences do not go together")
	}
	return cfg, nil
}

// Prepare is redlock prepare: it waits until new nodes vote.
func Prepare(c *console.Console, _ string, args []string) (code int, err error) {
	cfg, err := parsePrepare(args)
	if err != nil {
		return 0, err
	}
	servers, err := reach.Real(c, &cfg.Flags, "prepare")
	if err != nil {
		return 0, err
	}
	opts, err := cfg.Options()
	if err != nil {
		return 0, err
	}

	fences, err := newReset(cfg.reset, servers, opts)
	if err != nil {
		return 0, err
	}
	defer fences.close()
	if len(cfg.reset) > 0 {
		if err := fences.refuse(servers); err != nil {
			return 0, err
		}
		if err := fences.forget(context.Background()); err != nil {
			return 0, err
		}
	}

	if cfg.fresh {
		if err := vouch(context.Background(), c, servers); err != nil {
			return 0, err
		}
	}

	signals, restore := proc.CatchSignals()
	defer restore()
	locker, nodes, err := reach.Connect(c, servers, opts)
	if err != nil {
		return 0, err
	}
	defer locker.Close()
	if err := strangers(servers, peek.Status(context.Background(), locker)); err != nil {
		return 0, err
	}

	made := cfg.MaxTTL == 0 || makeSet(c, locker, cfg)

	// Connect has written the markers. The rest is waiting.
	now := votingOf(locker, servers)
	nodes.Tell("", "")
	within := ""
	if !cfg.noWait && !cfg.enough(now) && cfg.Timeout != 0 {
		bound := cfg.Timeout
		if within = fmt.Sprintf(" within --timeout %v", bound); bound < 0 {
			bound = now.bound(opts)
			within = fmt.Sprintf(" within %v", phrase.Tenths(bound))
		}
		if now, err = waitForVotes(locker, servers, cfg, bound, signals); err != nil {
			return 0, err
		}
		// The nodes may have been started only meanwhile.
		made = made || cfg.enough(now) && makeSet(c, locker, cfg)
	}
	if !made {
		c.Note("the set is not made yet: the first program that locks makes it, with its own MaxTTL")
	}
	report := newPrepareReport(now)
	say := c.Result
	if cfg.json {
		say = func(string, ...any) {}
	}
	err = conclude(c, cfg, report, now, within, say)
	if err == nil && len(now.absent) == 0 {
		err = fences.drop(context.Background(), report, say)
	}
	if cfg.json {
		report.Prepared = err == nil
		if err := c.PrintJSON(report); err != nil {
			return 0, err
		}
	}
	return 0, err
}

// makeSet waits until the Locker has made the set, as the first program that locks would, so that the set allows
// --max-ttl and no other one. It reports whether there is a set, and gives up after a moment if the nodes do not
// answer.
func makeSet(c *console.Console, locker *redlock.Locker, cfg *prepareConfig) bool {
	for begin := time.Now(); locker.Members().Epoch == 0 && time.Since(begin) < peek.Patience; {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		_ = locker.WaitReady(ctx) // the votes are counted later
		cancel()
	}
	m := locker.Members()
	if m.Epoch > 0 && m.MaxTTL != cfg.MaxTTL {
		c.Note("the set allows a TTL of %v, and not of %s %v: redlock members set max-ttl changes that", m.MaxTTL, cfg.MaxTTLFrom, cfg.MaxTTL)
	}
	return m.Epoch > 0
}

// conclude prints which nodes vote, and fails if those do not that the command line asks for.
func conclude(c *console.Console, cfg *prepareConfig, report *prepareReport, now *voting, within string, say func(format string, args ...any)) error {
	n := len(now.nodes)
	switch {
	case cfg.noWait:
		return marked(report, now, say)
	case !cfg.enough(now):
		return exit.Fail(exit.NoQuorum, explain.RemedyForAll(now.absent, n), "not prepared%s: %s", within, explain.Voteless(now.absent, n))
	case len(now.absent) > 0:
		c.Note("%s", explain.Voteless(now.absent, n))
		say("%d of %s vote, which is a quorum", n-len(now.absent), phrase.Count(n, "node"))
	default:
		say("%s", explain.AllVote(n))
	}
	return nil
}

// strangers returns an error if one of the servers is not among the members, which s has.
func strangers(servers []*redis.Options, s *redlock.Status) error {
	var names []string
	for _, o := range servers {
		if !slices.ContainsFunc(s.Nodes, func(n redlock.NodeStatus) bool { return n.Node == o.Addr }) {
			names = append(names, o.Addr)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return exit.Fail(exit.NoQuorum, "prepare new nodes alone, then make them members, one after another: redlock members add "+names[0], "not prepared: %s %s no member of the set of the others", strings.Join(names, ", "), phrase.Verb(len(names), "is", "are"))
}

// A voting says which members of the set vote; without a description, which of the given nodes.
type voting struct {
	nodes  []string
	need   int                  // the quorum
	absent []*redlock.NodeError // those that cannot vote
}

// votingOf asks the members which of them vote.
func votingOf(locker *redlock.Locker, servers []*redis.Options) *voting {
	status := settled(locker, func(n redlock.NodeStatus) bool {
		given := slices.ContainsFunc(servers, func(o *redis.Options) bool { return o.Addr == n.Node })
		return !given && n.Err != nil && n.Err.Outcome == redlock.OutcomeTimeout
	})
	v := &voting{need: locker.Members().Quorum, absent: explain.Absent(status)}
	for _, n := range status.Nodes {
		v.nodes = append(v.nodes, n.Node)
	}
	return v
}

// grace is how much longer than the longest quarantine prepare waits without --timeout.
const grace = 30 * time.Second

// bound returns how long prepare waits without --timeout: for quarantines that there are or may come, and the grace.
func (v *voting) bound(opts *redlock.Options) time.Duration {
	longest := reach.Quarantine(opts)
	for _, e := range v.absent {
		longest = max(longest, e.TTL)
	}
	return longest + grace
}

// enough reports whether all nodes vote, or with --quorum enough of them.
func (cfg *prepareConfig) enough(v *voting) bool {
	return len(v.absent) == 0 || cfg.quorum && len(v.nodes)-len(v.absent) >= v.need
}

// waitForVotes waits until enough nodes vote, for bound at most, and returns which vote then. A signal is an error.
func waitForVotes(locker *redlock.Locker, servers []*redis.Options, cfg *prepareConfig, bound time.Duration, signals <-chan os.Signal) (*voting, error) {
	watched, stop := proc.UntilSignal(signals)
	defer stop()
	ctx, cancel := context.WithTimeout(watched, bound)
	defer cancel()
	for {
		now := votingOf(locker, servers)
		if cfg.enough(now) {
			return now, nil
		}
		rest := reach.AskAgain
		for _, e := range now.absent {
			if e.Outcome == redlock.OutcomeQuarantined {
				rest = min(rest, e.TTL+time.Millisecond)
			}
		}
		select {
		case <-time.After(rest):
			continue
		case <-ctx.Done():
		}
		now = votingOf(locker, servers) // the last state may be a second old
		var by proc.Interrupted
		if !cfg.enough(now) && errors.As(context.Cause(watched), &by) {
			n := len(now.nodes)
			return nil, exit.Fail(by.Code(), explain.RemedyForAll(now.absent, n), "%v while waiting for votes: %s", by, explain.Voteless(now.absent, n))
		}
		return now, nil
	}
}

// marked ends prepare --no-wait: it says when all nodes vote, or returns the failure that some have no marker.
func marked(report *prepareReport, now *voting, say func(format string, args ...any)) error {
	n, absent := len(now.nodes), now.absent
	var unreached []*redlock.NodeError
	var rest time.Duration
	for _, e := range absent {
		if e.Outcome != redlock.OutcomeQuarantined {
			unreached = append(unreached, e)
		}
		rest = max(rest, e.TTL)
	}
	switch {
	case len(unreached) > 0:
		return exit.Fail(exit.NoQuorum, explain.RemedyForAll(unreached, n), "not prepared: %s", explain.Without("without a marker", unreached, n))
	case len(absent) > 0:
		at := time.Now().Add(rest + time.Second - 1).Truncate(time.Second) // not a moment too early
		report.VotesAt = &at
		say("%s from %s on, in %v", explain.AllVote(n), at.Format(time.RFC3339), phrase.Tenths(rest))
	default:
		say("%s", explain.AllVote(n))
	}
	return nil
}
