package operate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

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
	"github.com/quorumlock/redlock/internal/nodeurl"
)

// membersConfig is what the command line of redlock members says.
type membersConfig struct {
	reach.Flags
	json, plan, stopped bool
	over                bool     // --locks-over: no lock is held any more that lives longer than the new MaxTTL
	yes                 bool     // forget, restore: do not ask
	verb                string   // add, remove, replace, set, forget or restore; "": show
	args                []string // of the verb
}

const membersUsage = "redlock members shows them; add URL, remove ADDRESS, replace ADDRESS URL, and set max-ttl, quorum or separator change them; forget NODE makes a node forget its set; restore makes one again of which most has been lost; see redlock help members"

// parseMembers reads the arguments of redlock members.
func parseMembers(args []string) (*membersConfig, error) {
	cfg := &membersConfig{Flags: reach.Defaults}
	f := flags.New("members")
	f.SetInterspersed(true)
	cfg.AddNodes(f)
	cfg.AddTimeout(f)
	f.Toggle("plan", "", &cfg.plan)
	f.Toggle("programs-stopped", "", &cfg.stopped)
	f.Toggle("locks-over", "", &cfg.over)
	f.Toggle("yes", "", &cfg.yes)
	f.Toggle("json", "", &cfg.json)
	rest, err := f.Parse(args)
	if err != nil {
		return nil, err
	}
	if len(rest) > 0 && rest[0] == "forget" {
		return cfg, cfg.parseForget(f, rest[1:])
	}
	if len(rest) > 0 && rest[0] == "restore" {
		return cfg, cfg.parseRestore(f, rest[1:])
	}
	takes := map[string]int{"add": 1, "remove": 1, "replace": 2, "set": 2}
	if len(rest) > 0 {
		cfg.verb, cfg.args = rest[0], rest[1:]
		n, ok := takes[cfg.verb]
		switch {
		case !ok:
			return nil, exit.Fail(exit.Usage, membersUsage, "members: unknown argument %q", cfg.verb)
		case len(cfg.args) != n:
			return nil, exit.Fail(exit.Usage, membersUsage, "members %s takes %s, and was given %q", cfg.verb, phrase.Count(n, "argument"), cfg.args)
		}
	}
	switch {
	case cfg.yes:
		return nil, exit.Fail(exit.Usage, "changes ask nothing", "--yes goes with members forget and members restore")
	case cfg.verb == "" && cfg.plan:
		return nil, exit.Fail(exit.Usage, membersUsage, "--plan says what a change would do, and there is none")
	case cfg.verb == "" && f.Changed("timeout"):
		return nil, exit.Fail(exit.Usage, membersUsage, "--timeout is for a change, and there is none")
	case cfg.stopped && (cfg.verb != "set" || cfg.args[0] != "separator"):
		return nil, exit.Fail(exit.Usage, "programs may run during all other changes", "--programs-stopped goes with set separator")
	case cfg.over && (cfg.verb != "set" || cfg.args[0] != "max-ttl"):
		return nil, exit.Fail(exit.Usage, "all other changes wait for the locks that were counted before", "--locks-over goes with set max-ttl")
	}
	return cfg, nil
}

// Members is redlock members: it shows the members of a set, and changes them and its settings.
func Members(c *console.Console, _ string, args []string) (int, error) {
	cfg, err := parseMembers(args)
	if err != nil {
		return 0, err
	}
	switch cfg.verb {
	case "forget":
		return 0, forget(c, cfg)
	case "restore":
		return 0, restore(c, cfg)
	}
	servers, err := reach.Real(c, &cfg.Flags, "ask")
	if err != nil {
		return 0, err
	}
	d := peek.Read(servers, false)
	if d.Set == nil {
		return 0, undescribed(c, cfg, d)
	}
	d.Complete(servers)
	if cfg.verb == "" {
		return 0, showMembers(c, cfg, servers, d)
	}
	steps, err := cfg.steps(servers, d)
	if err != nil {
		return 0, err
	}
	return 0, changeMembers(c, cfg, servers, d, steps)
}

// A step is one change of the set, with its texts.
type step struct {
	redlock.Change
	what string // the command in words: "add a:6379"
	done string // why there is nothing to change; "": there is
}

// steps returns the changes that the command line asks for.
func (cfg *membersConfig) steps(servers []*redis.Options, d *peek.View) ([]step, error) {
	switch cfg.verb {
	case "add":
		addr, err := newcomer(cfg.args[0], servers)
		if err != nil {
			return nil, err
		}
		return []step{adds(addr, d)}, nil
	case "remove":
		addr, err := memberNamed(d, cfg.args[0])
		if err != nil {
			return nil, err
		}
		if !d.Set.Has(addr) {
			return nil, exit.Fail(exit.Usage, "redlock members shows them", "%s is no member: the members are %s", addr, strings.Join(d.Set.Members, ", "))
		}
		return []step{removes(addr)}, nil
	case "replace":
		return cfg.replaces(servers, d)
	}
	return cfg.sets(d)
}

func adds(addr string, d *peek.View) step {
	s := step{Change: redlock.Change{Add: addr}, what: "add " + addr}
	if d.Set.Has(addr) {
		s.done = addr + " is a member already"
	}
	return s
}

func removes(addr string) step {
	return step{Change: redlock.Change{Remove: addr}, what: "remove " + addr}
}

// replaces returns the two changes of redlock members replace. A member that does not answer is removed first: while
// it counts, a change may need all others.
func (cfg *membersConfig) replaces(servers []*redis.Options, d *peek.View) ([]step, error) {
	before, err := memberNamed(d, cfg.args[0])
	if err != nil {
		return nil, err
	}
	addr, err := newcomer(cfg.args[1], servers)
	switch {
	case err != nil:
		return nil, err
	case before == addr:
		return nil, exit.Fail(exit.Usage, "a member is replaced by another node", "members replace: both are %s", addr)
	case !d.Set.Has(before) && d.Set.Has(addr):
		return []step{{done: fmt.Sprintf("%s is no member, and %s is one already", before, addr)}}, nil
	case !d.Set.Has(before):
		return nil, exit.Fail(exit.Usage, "if a replace has ended half-way, after it had removed "+before+": redlock members add "+addr, "%s is no member: the members are %s", before, strings.Join(d.Set.Members, ", "))
	case d.Set.Has(addr):
		return []step{removes(before)}, nil // an earlier command ended half-way
	}
	if k := d.Node(before); k != nil && k.Err != nil {
		return []step{removes(before), adds(addr, d)}, nil
	}
	return []step{adds(addr, d), removes(before)}, nil
}

// sets returns the change of redlock members set.
func (cfg *membersConfig) sets(d *peek.View) ([]step, error) {
	what, value := cfg.args[0], cfg.args[1]
	s := step{what: "set " + what + " " + value}
	same := func(is bool) {
		if is {
			s.done = what + " is " + value + " already"
		}
	}
	switch what {
	case "max-ttl":
		most, err := reach.MaxTTL("members set max-ttl", value)
		if err != nil {
			return nil, err
		}
		s.MaxTTL, s.LongerOver = &most, cfg.over
		same(most.Milliseconds() == d.Set.MaxTTL && d.Set.Other == 0)
	case "quorum":
		n := 0
		if value != "majority" {
			var err error
			if n, err = strconv.Atoi(value); err != nil || n < 1 {
				return nil, exit.Fail(exit.Usage, "give a number of nodes, or majority", "members set quorum %q is not a number", value)
			}
		}
		if all := len(d.Set.Members); n != 0 && (n <= all/2 || n > all) {
			return nil, exit.Fail(exit.Usage, "majority is the one that survives the most failures", "members set quorum %d: with %s it can be %d to %d", n, phrase.Count(all, "member"), all/2+1, all)
		}
		s.Quorum = &n
		same(n == d.Set.Quorum)
	case "separator":
		text := value
		switch value {
		case "":
			return nil, exit.Fail(exit.Usage, "none: names are not divided", "members set separator is empty")
		case "none":
			text = ""
		}
		s.Separator = &text
		same(text == d.Set.Separator)
		if !cfg.stopped && !cfg.plan && s.done == "" {
			return nil, exit.Fail(exit.Usage, "stop all programs that use the set, and say so: redlock members set separator "+value+" --programs-stopped. It waits until their locks are over, and changes it; then start them with the new separator, or without one", "the separator cannot be changed while programs run: one could hold a/b, and another one the folder a")
		}
	default:
		return nil, exit.Fail(exit.Usage, membersUsage, "members set knows max-ttl, quorum and separator, and not %q", what)
	}
	return []step{s}, nil
}

// aNode reports whether text is a host and a port, or the path of a socket.
func aNode(text string) bool {
	if strings.HasPrefix(text, "/") {
		return true
	}
	host, port, err := net.SplitHostPort(text)
	return err == nil && host != "" && port != ""
}

// memberNamed returns the address, in the description, of the member that named means: an address or a URL.
func memberNamed(d *peek.View, named string) (addr string, err error) {
	if addr = named; strings.Contains(named, "://") {
		if err := reach.CheckURL("members", named); err != nil {
			return "", err
		}
		o, _ := nodeurl.Parse(named)
		addr = o.Addr
	} else if !aNode(named) {
		return "", exit.Fail(exit.Usage, "redlock members shows the addresses of the members", "members: a node is named by its address, HOST:PORT, or by its URL, and %q is neither", named)
	}
	if k := d.Node(addr); k != nil && k.Told.Description != nil && k.Told.Set == d.Set.Set && d.Set.Has(k.Told.Self) {
		return k.Told.Self, nil
	}
	return addr, nil
}

// newcomer returns the address of a node that is to become a member. Programs reach it with the settings of the first
// node that they were given, so its URL must not differ from these.
func newcomer(named string, servers []*redis.Options) (string, error) {
	if !strings.Contains(named, "://") {
		if !aNode(named) {
			return "", exit.Fail(exit.Usage, "write redis://HOST:PORT", "members: a node is named by its URL, or by its address, HOST:PORT, and %q is neither", named)
		}
		return named, nil
	}
	if err := reach.CheckURL("members", named); err != nil {
		return "", err
	}
	o, _ := nodeurl.Parse(named)
	first, other := servers[0], ""
	switch {
	case (o.Username != "" || o.Password != "") && (o.Username != first.Username || o.Password != first.Password):
		other = "another user or password"
	case o.Network == "tcp" && first.Network == "tcp" && (o.TLSConfig == nil) != (first.TLSConfig == nil):
		other = "another scheme (redis:// is without TLS, rediss:// with it)"
	case o.DB != 0 && o.DB != first.DB:
		other = "another database"
	default:
		return o.Addr, nil
	}
	return "", exit.Fail(exit.Usage, "set the new server up like the first node; what is left out of its URL is taken from there", "%s has %s than %s, the first node: programs reach a new member with the settings of the first node that they were given", o.Addr, other, first.Addr)
}

// undescribed shows nodes without a description, or says why it is unknown or cannot be changed.
func undescribed(c *console.Console, cfg *membersConfig, d *peek.View) error {
	keep, silent, why := 0, 0, error(nil)
	var copies, damaged []string
	for _, k := range d.Given {
		switch {
		case k.Copy:
			copies = append(copies, k.Addr)
		case k.Told.Damage != nil:
			damaged = append(damaged, k.Addr)
		case k.Err != nil:
			silent++
			why = k.Err
		case k.Told.Description != nil:
			keep++
		}
	}
	switch {
	case len(d.Given)-silent <= len(d.Given)/2:
		return exit.Fail(exit.NoQuorum, remedyFor(why), "%d of %s do not answer, which are too many to tell the members: %s", silent, phrase.Count(len(d.Given), "node"), facing(d))
	case len(copies) > 0:
		return exit.Fail(exit.NoQuorum, "make them forget whose data it was: redlock members forget "+strings.Join(copies, " "), "the given nodes are no set: %s of them %s a copy of another server's data: %s", phrase.Count(len(copies), "node"), phrase.Verb(len(copies), "has", "have"), facing(d))
	case len(damaged) > 0:
		return exit.Fail(exit.NoQuorum, "make them forget that: redlock members forget "+strings.Join(damaged, " "), "no majority of the given nodes keeps the description of one set: %s", facing(d))
	case keep > 0:
		return exit.Fail(exit.NoQuorum, "give the nodes of one set: it is that of which a majority of the given nodes keeps the description. A node that keeps what is out of date can be made to forget it: redlock members forget. If most members of a set have lost its description: redlock members restore", "the given nodes are not of one set: %s", facing(d))
	case cfg.verb != "":
		return exit.Fail(exit.NoQuorum, "if no program uses these nodes, there is nothing to change: give all programs the nodes that you want", "the nodes keep no description that could be changed: no program has locked on them")
	}
	return showUndescribed(c, cfg, d)
}

// facing returns a list of what each given node keeps, as text.
func facing(d *peek.View) string {
	var each []string
	for _, k := range d.Given {
		each = append(each, k.Addr+": "+says(&k))
	}
	return strings.Join(each, "; ")
}

// says returns, in words, what a node keeps.
func says(k *peek.Node) string {
	switch {
	case k.Err != nil:
		return k.Err.Error()
	case k.Told.Damage != nil:
		return fmt.Sprintf("it keeps what cannot be the description of a set: %v", k.Told.Damage)
	case k.Told.Description == nil:
		return "it keeps no description"
	case k.Copy:
		return fmt.Sprintf("it has a copy of the data of %s, which answers there as another server", k.Told.Self)
	}
	return fmt.Sprintf("it keeps epoch %d of the set %s, with the members %s", k.Told.Epoch, k.Told.Set, strings.Join(k.Told.Members, ", "))
}

// changeMembers makes the changes, or with --plan says what they would do.
func changeMembers(c *console.Console, cfg *membersConfig, servers []*redis.Options, d *peek.View, steps []step) error {
	report := &changeReport{Plan: cfg.plan}
	if steps[0].done != "" {
		return unchanged(c, cfg, report, d, steps[0].done)
	}
	signals, restore := proc.CatchSignals()
	defer restore()
	ctx, stop := proc.UntilSignal(signals)
	defer stop()
	if cfg.Timeout >= 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, cfg.Timeout)
		defer cancel()
	}
	locker, err := operator(cfg, servers, d)
	if err != nil {
		return err
	}
	defer locker.Close()
	if err := ableToChange(ctx, locker, steps[0].MaxTTL != nil); err != nil {
		return err
	}
	if len(steps) == 2 && steps[0].Remove != "" { // find out now whether the new node is fit: after the removal is too late
		if _, err := locker.PlanChange(ctx, steps[1].Change, nil); err != nil && !errors.Is(err, redlock.ErrNoQuorum) {
			return notChanged(ctx, cfg, err)
		}
	}
	cautions(c, cfg, d, steps)
	m := locker.Members()
	for i, s := range steps {
		before := m
		switch {
		case !cfg.plan && s.MaxTTL != nil:
			m, err = setMaxTTL(ctx, c, cfg, locker, servers, s.Change)
		case !cfg.plan:
			m, err = locker.Change(ctx, s.Change, tellWaits(c))
		case i == 0:
			m, err = locker.PlanChange(ctx, s.Change, report.waits)
		default:
			m = planned(before, s.Change)
			report.waits("the locks that were counted before the last change to be over", reach.Quarantine(&redlock.Options{MaxTTL: d.Longest()}))
		}
		if err != nil {
			return notChanged(ctx, cfg, err)
		}
		if !cfg.json {
			tellChange(c, cfg, s, before, m, report)
		}
		report.Waits = append(report.Waits, report.these...)
		report.these = nil
	}
	report.Changed = !cfg.plan
	if cfg.json {
		report.of(m)
		return c.PrintJSON(report)
	}
	return nil
}

// operator opens the Locker with which members are changed. It has no hooks: the change itself reports what happens.
func operator(cfg *membersConfig, servers []*redis.Options, d *peek.View) (*redlock.Locker, error) {
	opts := cfg.LookOptions(d)
	opts.Separator = "" // that of the set
	locker, err := reach.Open(servers, opts)
	if err != nil {
		return nil, reach.NotConnected(err)
	}
	return locker, nil
}

// notChanged returns the failure that says why a change was not made, and whether it can be tried again.
func notChanged(ctx context.Context, cfg *membersConfig, err error) error {
	again := "redlock members shows what the set is now. Give the same command again: it goes on where this one has ended"
	var by proc.Interrupted
	switch {
	case errors.Is(err, redlock.ErrOvertaken):
		return exit.Fail(exit.Busy, "redlock members shows what the set is now. Give the command again if you still want it", "%s: somebody else makes one, or had begun one that is finished now", phrase.Plain(err))
	case errors.As(context.Cause(ctx), &by):
		return exit.Fail(by.Code(), again, "%v before the change was in force", by)
	case ctx.Err() != nil:
		return exit.Fail(exit.NoQuorum, again, "the change was not in force within --timeout %v", cfg.Timeout)
	case explain.ForOperator(err):
		return exit.Fail(exit.NoQuorum, "redlock members shows what each of the nodes keeps", "%s", phrase.Plain(err))
	case errors.Is(err, redlock.ErrNoQuorum):
		return exit.Fail(exit.NoQuorum, "bring back the members that are down, or put a new node in the place of one: redlock members replace ADDRESS URL", "%s", phrase.Plain(err))
	}
	return exit.Fail(exit.NoQuorum, "redlock members shows the members, and redlock doctor examines servers", "%s", phrase.Plain(err))
}
