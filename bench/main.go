// Command bench compares lock libraries on the same five Redis servers, which
// it starts and stops itself. See README.md for what is measured and how.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/quorumlock/redlock/bench/contender"
)

const usageText = `usage: go run . [flags]

Compares lock libraries on five redis-server processes of its own and prints a
Markdown table for each scenario.

`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	if slices.Equal(os.Args[1:], []string{childArg}) {
		err = obey(ctx, os.Stdin, os.Stdout)
	} else {
		err = command(ctx, os.Args[1:], os.Stdout)
	}
	stop()
	switch {
	case err == nil:
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// command is main with its surroundings as parameters, and with every server
// stopped when it returns.
func command(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usageText)
		flags.PrintDefaults()
	}
	var (
		quick      = flags.Bool("quick", false, "small numbers: an order of magnitude in a minute or two")
		rounds     = flags.Int("rounds", 0, "how often each contender is measured (default 5, with -quick 2)")
		window     = flags.Duration("time", 0, "how long a load runs (default 1s, with -quick 300ms)")
		scenarioIn = flags.String("scenario", "", "scenarios, by name with commas (default all)")
		lockersIn  = flags.String("contenders", "", "contenders, by name with commas (default all)")
		out        = flags.String("out", "", "write the report to this `file` as well")
	)
	if err := flags.Parse(args); err != nil {
		return flag.ErrHelp // flag has said what was wrong
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	wanted, err := pick(scenarios(), *scenarioIn, scenarioName)
	if err != nil {
		return fmt.Errorf("-scenario: %w", err)
	}
	cs, err := pick(contender.All(), *lockersIn, contenderName)
	if err != nil {
		return fmt.Errorf("-contenders: %w", err)
	}
	e := &env{sizes: fullSizes(), contenders: cs, args: args}
	if *quick {
		e.sizes = quickSizes()
	}
	if *rounds > 0 {
		e.rounds = *rounds
	}
	if *window > 0 {
		e.window = *window
	}
	return e.measure(ctx, wanted, stdout, *out)
}

// measure runs the scenarios and writes their results, also when a later one fails: an hour of
// figures must not be lost for the last table.
func (e *env) measure(ctx context.Context, wanted []scenario, stdout io.Writer, out string) error {
	e.began, e.loadBefore = time.Now(), loadAverage()
	contender.Silence()
	var err error
	if e.fleet, err = startFleet(ctx); err != nil {
		return err
	}
	defer e.fleet.stop()
	if e.server, err = readInfo(ctx, e.fleet.watch[0]); err != nil {
		return err
	}
	var findings []finding
	var failed error
	for _, s := range wanted {
		tables, err := s.run(ctx, e)
		if err != nil {
			failed = fmt.Errorf("%s: %w", s.name, err)
			break
		}
		findings = append(findings, finding{s, tables})
	}
	if failed == nil && e.failures > 0 {
		failed = fmt.Errorf("%d measurement(s) failed; the tables say which", e.failures)
	}
	e.writeReport(stdout, findings, failed)
	if out == "" {
		return failed
	}
	return errors.Join(failed, writeFile(out, func(w io.Writer) { e.writeReport(w, findings, failed) }))
}

func writeFile(path string, write func(io.Writer)) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	write(f)
	return f.Close()
}
