// Package operate has the verbs with which an operator examines, prepares and changes the nodes of a set: doctor,
// prepare and members.
package operate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/redlock/cmd/redlock/internal/console"
	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/cmd/redlock/internal/flags"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
	"github.com/quorumlock/redlock/cmd/redlock/internal/reach"
	"github.com/quorumlock/redlock/internal/printable"
)

// Doctor is redlock doctor: it says whether locks can be acquired, and what is wrong with the nodes.
func Doctor(c *console.Console, _ string, args []string) (code int, err error) {
	cfg := reach.Defaults
	voteless, quorum, asJSON := false, false, false
	f := flags.New("doctor")
	cfg.AddNodes(f)
	cfg.AddTTL(f)
	cfg.AddMaxTTL(f)
	cfg.AddSeparator(f)
	f.Toggle("no-quarantine", "", &voteless)
	f.Toggle("quorum", "", &quorum)
	f.Toggle("json", "", &asJSON)
	rest, err := f.Parse(args)
	switch {
	case err != nil:
		return 0, err
	case len(rest) > 0:
		return 0, exit.Fail(exit.Usage, "see redlock help doctor", "doctor takes flags only, and was given %q", rest[0])
	}
	servers, err := reach.Real(c, &cfg, "examine")
	if err != nil {
		return 0, err
	}
	if _, err := cfg.Options(); err != nil {
		return 0, err
	}
	x := examineSet(servers, &cfg, !voteless)
	found := findings(x, &cfg, !voteless)
	can := x.judge(found, time.Now())
	must := 0
	for _, f := range found {
		if f.must {
			must++
		}
	}
	if !can.can || must > 0 && !quorum {
		code = exit.Found
	}
	switch {
	case asJSON:
		return code, c.PrintJSON(newDoctorReport(x, can, found))
	case cfg.Quiet && code == 0:
		return 0, nil
	}
	printExamination(c, x, can, found, must)
	return code, nil
}

// printExamination prints the answer, and then the findings.
func printExamination(c *console.Console, x *examination, can *verdict, found []finding, must int) {
	line := func(format string, args ...any) { fmt.Fprintln(c.Stdout, printable.Text(fmt.Sprintf(format, args...))) }
	line("%s", can.text)
	if can.todo != "" {
		line("  %s", can.todo)
	}
	for _, text := range append(kinds(x.patients), x.inSet()...) {
		line("%s", text)
	}
	for _, f := range found {
		mark := "?"
		if f.must {
			mark = "!"
		}
		line("%s %s: %s", mark, cmp.Or(strings.Join(f.nodes, ", "), "the set"), f.what)
		line("  %s", f.todo)
	}
	var well []string
	for _, p := range x.patients {
		if !slices.ContainsFunc(found, func(f finding) bool { return slices.Contains(f.nodes, p.name) }) {
			well = append(well, p.name)
		}
	}
	if len(well) > 0 {
		line("%s: nothing to change", strings.Join(well, ", "))
	}
	switch {
	case must > 0:
		line("%s %s to change", phrase.Count(must, "thing"), phrase.Verb(must, "has", "have"))
	case can.can:
		line("nothing has to change")
	}
}

// inSet returns lines about the set of the nodes: its members, and how long a lock may live; none if there is no set.
func (x *examination) inSet() []string {
	d := x.set.Set
	if d == nil {
		return nil
	}
	return []string{fmt.Sprintf("set %s, epoch %d: %s, quorum %d, longest TTL %v", d.Set, d.Epoch, phrase.Count(len(d.Members), "member"), d.Needs(), printable.Duration(x.longest()))}
}

// kinds returns lines: what servers the nodes are, and their versions.
func kinds(patients []*patient) (lines []string) {
	names := make(map[string][]string)
	for _, p := range patients {
		if p.err != nil {
			continue
		}
		what := p.info.Server()
		if why, _ := p.info.Unsupported(); why == "" {
			if _, known := p.info.KeepsScripts(); known {
				what += "; scripts stay in one process"
			} else {
				what += "; nothing says whether scripts stay in one process"
			}
		}
		names[what] = append(names[what], p.name)
	}
	for _, what := range slices.Sorted(maps.Keys(names)) {
		lines = append(lines, strings.Join(names[what], ", ")+": "+what)
	}
	return lines
}
