package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
	"github.com/quorumlock/redlock/internal/printable"
	"github.com/quorumlock/redlock/internal/wire"
)

// doctor is redlock doctor.
func (c *command) doctor(_ string, args []string) (code int, err error) {
	cfg := noFlags
	voteless, asJSON := false, false
	f := newFlags("doctor")
	cfg.addNodes(f)
	cfg.addTTL(f)
	f.toggle("no-quarantine", "", &voteless)
	f.toggle("json", "", &asJSON)
	rest, err := f.parse(args)
	switch {
	case err != nil:
		return 0, err
	case len(rest) > 0:
		return 0, exit.Fail(exit.Usage, "see redlock help doctor", "doctor takes flags only, and was given %q", rest[0])
	}
	servers, err := c.realNodes(&cfg, "examine")
	if err != nil {
		return 0, err
	}
	patients := make([]*patient, len(servers))
	var examined sync.WaitGroup
	for i, o := range servers {
		examined.Go(func() { patients[i] = examine(o) })
	}
	examined.Wait()

	found := findings(patients, cfg.ttl, !voteless)
	must := 0
	for _, f := range found {
		if f.must {
			must, code = must+1, exit.Found
		}
	}
	switch {
	case asJSON:
		if err := c.printJSON(newDoctorReport(patients, found)); err != nil {
			return 0, err
		}
		return code, nil
	case cfg.quiet && must == 0:
		return 0, nil
	}
	set := setOf(patients).set
	for _, line := range append(kinds(patients), inSet(set)...) {
		fmt.Fprintln(c.stdout, printable.Text(line))
	}
	for _, f := range found {
		mark := "?"
		if f.must {
			mark = "!"
		}
		fmt.Fprintf(c.stdout, "%s %s: %s\n  %s\n", mark, strings.Join(f.nodes, ", "), printable.Text(f.what), printable.Text(f.todo))
	}
	var well []string
	for _, p := range patients {
		if !slices.ContainsFunc(found, func(f finding) bool { return slices.Contains(f.nodes, p.name) }) {
			well = append(well, p.name)
		}
	}
	if len(well) > 0 {
		fmt.Fprintf(c.stdout, "%s: nothing to change\n", strings.Join(well, ", "))
	}
	if must > 0 {
		fmt.Fprintf(c.stdout, "%s %s to change\n", phrase.Count(must, "thing"), phrase.Verb(must, "has", "have"))
		return code, nil
	}
	fmt.Fprintln(c.stdout, "nothing has to change")
	return 0, nil
}

// inSet says to which set the nodes belong, if they belong to one.
func inSet(d *wire.Description) []string {
	if d == nil {
		return nil
	}
	return []string{fmt.Sprintf("set %s, epoch %d: %s, quorum %d", d.Set, d.Epoch, phrase.Count(len(d.Members), "member"), d.Needs())}
}

// kinds says which servers the nodes are.
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
