package trial

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/quorumlock/redlock/chaos"
	"github.com/quorumlock/redlock/cmd/redlock/internal/console"
	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
	"github.com/quorumlock/redlock/cmd/redlock/internal/proc"
)

// usualArenas are the default: they need no other program.
var usualArenas = []*chaos.Arena{chaos.Model, chaos.Miniredis}

// A budget is how many schedules run by default, and for how long at most. They are the same every time; a slow
// machine runs fewer.
type budget struct {
	schedules int
	limit     time.Duration
}

var budgets = map[*chaos.Arena]budget{
	chaos.Model:     {30_000, 25 * time.Second},
	chaos.Miniredis: {100, 15 * time.Second},
	chaos.Real:      {40, 2 * time.Minute},
}

// garbage is GOGC during campaigns. These allocate much and keep little: it saves an eighth of the model's time, and
// a third of miniredis's.
const garbage = 400

// mostSaved is how many files of one scenario in one arena are saved: more do not help.
const mostSaved = 100

// A chaosRun is one run of redlock chaos.
type chaosRun struct {
	*console.Console
	cfg     *chaosConfig
	parts   []*part
	skipped []string // arenas and scenarios that do not run, with the reasons
	page    *os.File // --report
	begin   time.Time
	watch   *progress

	findings []chaos.Finding
	coverage *chaos.Coverage // --coverage; else nil
	bad      map[string]int  // how many histories had violations, by arena and scenario
	saved    []string        // their files
	stopped  os.Signal       // the signal that ended the run early
}

// A part is the campaign in one arena.
type part struct {
	*chaos.Campaign
	limit time.Duration // 0: none
	took  time.Duration
}

// Chaos is redlock chaos: it runs schedules of faults, and judges what the clients did.
func Chaos(c *console.Console, _ string, args []string) (int, error) {
	cfg, err := parseChaos(args)
	switch {
	case err != nil:
		return 0, err
	case cfg.list:
		return 0, listChaos(c, cfg.json)
	}
	if _, set := console.Lookup(c.Env, "GOGC"); !set {
		defer debug.SetGCPercent(debug.SetGCPercent(garbage))
	}
	h := &chaosRun{Console: c, cfg: cfg, begin: time.Now(), bad: make(map[string]int)}
	if err := h.plan(); err != nil {
		return 0, err
	}
	if err := h.open(); err != nil {
		return 0, err
	}
	if !cfg.json {
		fmt.Fprintln(c.Stdout, h.announcement())
		for _, why := range h.skipped {
			fmt.Fprintln(c.Stdout, why)
		}
	}
	h.run()
	return h.tell()
}

// plan makes a campaign for each arena (model, real servers) in which a scenario can run; none: an error.
func (h *chaosRun) plan() error {
	cfg := h.cfg
	for _, arena := range cfg.arenas {
		if err := arena.Ready(); err != nil {
			if !cfg.all {
				return exit.Fail(exit.NoQuorum, "install it, or use --arena model, which needs nothing", "--arena %s: %v", arena.Name, err)
			}
			h.skipped = append(h.skipped, fmt.Sprintf("%s: skipped: %v", arena.Name, err))
			continue
		}
		p := &part{Campaign: &chaos.Campaign{
			Arena: arena, Schedules: cfg.schedules, Seed: cfg.seed, Options: cfg.options(), Nodes: cfg.nodes,
		}}
		if cfg.coverage && arena == chaos.Model {
			h.coverage = new(chaos.Coverage)
			p.Coverage = h.coverage
		}
		p.Violated = func(history *chaos.History, verdict chaos.Verdict) { h.save(p, history, verdict) }
		if cfg.schedules == 0 && cfg.limit == 0 {
			p.Schedules, p.limit = budgets[arena].schedules, budgets[arena].limit
		}
		if h.choose(p); len(p.Scenarios) == 0 {
			continue
		}
		h.parts = append(h.parts, p)
		if p.Schedules > 0 {
			p.Schedules = max(p.Schedules, len(p.Scenarios)) // one for each scenario
		}
	}
	if len(h.parts) == 0 {
		return exit.Fail(exit.Usage, "see redlock chaos --list", "there is nothing to run: %s", strings.Join(h.skipped, "; "))
	}
	return nil
}

// choose gives the campaign p the scenarios that fit its arena, and notes why others do not.
func (h *chaosRun) choose(p *part) {
	names := make(map[string][]string) // by the reason
	for _, s := range h.cfg.scenarios {
		why := p.Arena.Unfit(s, p.Options, p.Nodes)
		if why == "" {
			p.Scenarios = append(p.Scenarios, s)
		} else if len(h.cfg.names) > 0 || slices.Contains(p.Arena.Scenarios(), s) { // a scenario that an arena can never run is not worth a line
			names[why] = append(names[why], s.Name)
		}
	}
	for _, why := range slices.Sorted(maps.Keys(names)) {
		what := "without " + strings.Join(names[why], ", ")
		if len(p.Scenarios) == 0 && len(names) == 1 {
			what = "skipped"
		}
		h.skipped = append(h.skipped, fmt.Sprintf("%s: %s: %s", p.Arena.Name, what, why))
	}
}

// open creates the files: an error must come now, not after eight hours.
func (h *chaosRun) open() (err error) {
	if name := h.cfg.save; name != "" {
		if err := os.MkdirAll(name, 0o777); err != nil { // before the report, which may be in it
			return exit.Fail(exit.CannotWrite, "", "--save: %v", err)
		}
	}
	if name := h.cfg.report; name != "" {
		if h.page, err = os.Create(name); err != nil {
			return exit.Fail(exit.CannotWrite, "", "--report: %v", err)
		}
	}
	if name := h.cfg.history; name != "" {
		f, err := os.Create(name)
		if err != nil {
			return exit.Fail(exit.CannotWrite, "", "--history: %v", err)
		}
		f.Close()
	}
	return nil
}

// announcement returns what will run, as text.
func (h *chaosRun) announcement() string {
	var parts []string
	share := h.cfg.limit / time.Duration(len(h.parts))
	for _, p := range h.parts {
		what := phrase.Count(len(p.Scenarios), "scenario")
		if len(p.Scenarios) == 1 {
			what = p.Scenarios[0].Name
		}
		switch {
		case p.limit > 0:
			what = fmt.Sprintf("up to %s schedules of %s in %v", phrase.Digits(p.Schedules), what, p.limit)
		case p.Schedules > 0 && share > 0:
			what = fmt.Sprintf("up to %s schedules of %s in about %v", phrase.Digits(p.Schedules), what, share)
		case share > 0:
			what = fmt.Sprintf("schedules of %s for about %v", what, share)
		default:
			what = fmt.Sprintf("%s of %s", phrase.Counted(p.Schedules, "schedule"), what)
		}
		parts = append(parts, fmt.Sprintf("%s: %s", p.Arena.Name, what))
	}
	return fmt.Sprintf("seed %d: %s", h.cfg.seed, strings.Join(parts, "; "))
}

// run runs the campaigns one after another, so that each has the whole machine. The first
// signal ends them when the schedules under way are done, and the second one ends the process.
func (h *chaosRun) run() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	signals := make(chan os.Signal, 1)
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		if !signal.Ignored(sig) {
			signal.Notify(signals, sig)
		}
	}
	h.watch = newProgress(h.Console, h.cfg.json)
	ended := make(chan os.Signal, 1)
	go func() {
		defer close(ended)
		select {
		case sig := <-signals:
			signal.Stop(signals)
			h.watch.news("%v: ends when the schedules under way are done; a second one ends it at once", proc.Name(sig))
			ended <- sig
			stop()
		case <-ctx.Done():
			signal.Stop(signals)
		}
	}()
	for i, p := range h.parts {
		if ctx.Err() != nil {
			break
		}
		if h.cfg.limit > 0 {
			p.limit = max(h.cfg.limit-time.Since(h.begin), 1) / time.Duration(len(h.parts)-i)
		}
		h.carryOut(ctx, p)
	}
	stop()
	h.stopped = <-ended
	h.watch.end()
}

func (h *chaosRun) carryOut(ctx context.Context, p *part) {
	if p.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.limit)
		defer cancel()
	}
	h.watch.begin(p)
	p.Progress = h.watch.note
	begin := time.Now()
	h.findings = append(h.findings, p.Findings(ctx)...)
	p.took = time.Since(begin)
}

// save writes the file of a history with a violation, and says how to replay it. A campaign calls it for one history
// at a time.
func (h *chaosRun) save(p *part, history *chaos.History, verdict chaos.Verdict) {
	if h.cfg.save == "" {
		return
	}
	run := history.Run
	kind := run.Arena + "-" + strings.ReplaceAll(run.Scenario, " ", "-")
	switch h.bad[kind]++; {
	case h.bad[kind] > mostSaved+1:
		return
	case h.bad[kind] > mostSaved:
		h.watch.news("%d of %s, %s are saved: further ones are not", mostSaved, run.Arena, run.Scenario)
		return
	}
	name := filepath.Join(h.cfg.save, fmt.Sprintf("%s-%d.jsonl", kind, run.Seed))
	if err := writeHistory(name, history); err != nil {
		h.watch.say("--save: %v", err)
		return
	}
	h.saved = append(h.saved, name)
	h.watch.news("%s: %v\n    replay: %s", name, verdict.Violations[0], p.Command(run.Scenario, run.Seed))
}

func writeHistory(name string, history *chaos.History) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(history.Write(f), f.Close())
}

// write writes --report and --history.
func (h *chaosRun) write() error {
	if h.page != nil {
		r := chaos.NewReport(fmt.Sprintf("redlock chaos, seed %d", h.cfg.seed), h.findings)
		if err := errors.Join(r.Write(h.page), h.page.Close()); err != nil {
			return fmt.Errorf("--report: %w", err)
		}
	}
	if h.cfg.history != "" {
		for _, f := range h.findings {
			for _, shown := range f.Shown {
				if err := writeHistory(h.cfg.history, shown.History); err != nil {
					return fmt.Errorf("--history: %w", err)
				}
			}
		}
	}
	return nil
}
