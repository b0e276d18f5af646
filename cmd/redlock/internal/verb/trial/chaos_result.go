package trial

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/quorumlock/redlock/chaos"
	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
	"github.com/quorumlock/redlock/cmd/redlock/internal/proc"
)

// tell prints the result, and returns the exit code.
func (h *chaosRun) tell() (int, error) {
	code, verdict, schedules := 0, "kept", 0
	for i := range h.findings {
		schedules += h.findings[i].Schedules
		if !h.findings[i].OK() {
			code, verdict = exit.Found, "violated"
		}
	}
	if schedules == 0 { // no success: nothing was tried
		code, verdict = exit.Found, "nothing was run"
	}
	if h.stopped != nil {
		number, _ := h.stopped.(syscall.Signal)
		code = exit.Signal + int(number)
	}
	var covered *chaos.CoverageReport
	var err error
	if h.coverage != nil {
		if covered, err = h.coverage.Report(); err != nil {
			return code, err
		}
	}
	switch {
	case h.cfg.json:
		s := h.summary(verdict)
		s.Coverage = covered
		err = h.PrintJSON(s)
	case h.cfg.replays():
		h.tellReplay()
	default:
		h.tellAll()
	}
	if covered != nil && !h.cfg.json {
		fmt.Fprintln(h.Stdout)
		err = covered.Write(h.Stdout)
	}
	if failed := h.write(); failed != nil {
		h.Say("%v", failed)
		if code == 0 {
			code = exit.CannotWrite
		}
	}
	return code, err
}

// tellAll prints the table, the details and the verdict.
func (h *chaosRun) tellAll() {
	rows := [][]string{{"arena", "scenario", "schedules", "holds", "outcome", "per second"}}
	for i := range h.findings {
		f := &h.findings[i]
		rows = append(rows, []string{f.Arena, f.Scenario, phrase.Digits(f.Schedules), phrase.Digits(f.Holds), f.Outcome(), phrase.PerSecond(f.PerSecond)})
	}
	var out strings.Builder
	out.WriteString("\n" + phrase.Table(rows, 2, 3, 5))
	var expected, bad strings.Builder
	for i := range h.findings {
		switch f := &h.findings[i]; {
		case !f.OK():
			bad.WriteString("\n" + f.Tell() + "\n")
		case f.Failed:
			expected.WriteString("\n" + f.Tell())
		}
	}
	if expected.Len() > 0 {
		out.WriteString(expected.String() + "\n")
	}
	out.WriteString(bad.String()) // at the end, next to the verdict
	fmt.Fprintf(h.Stdout, "%s\n%s\n", &out, h.verdict())
}

// verdict returns the last line of the result.
func (h *chaosRun) verdict() string {
	schedules, holds, violations, bad, must, failed := 0, 0, 0, 0, 0, 0
	for i := range h.findings {
		f := &h.findings[i]
		schedules += f.Schedules
		holds += f.Holds
		violations += f.Violations
		if !f.OK() {
			bad++
		}
		if f.MustFail {
			must++
		}
		if f.MustFail && f.Failed {
			failed++
		}
	}
	said := ""
	switch {
	case schedules == 0:
		said = "nothing was run"
	case violations > 0:
		said = fmt.Sprintf("%s in %s", phrase.Counted(violations, "violation"), phrase.Count(bad, "scenario"))
	case bad > 0:
		said = "a scenario that must fail has not failed"
	default:
		said = "no promise broken"
	}
	said = fmt.Sprintf("seed %d: %s: %s with %s in %v", h.cfg.seed, said, phrase.Counted(schedules, "schedule"), phrase.Counted(holds, "hold"),
		time.Since(h.begin).Round(100*time.Millisecond))
	if must > 0 {
		said += fmt.Sprintf("; of %s that must fail, %d did", phrase.Count(must, "scenario"), failed)
	}
	if h.stopped != nil {
		said += "; ended early by " + proc.Name(h.stopped)
	}
	return said
}

// tellReplay prints one schedule in full.
func (h *chaosRun) tellReplay() {
	var out strings.Builder
	for i := range h.findings {
		f := &h.findings[i]
		if len(f.Shown) == 0 {
			fmt.Fprintln(&out, f.Tell())
			continue
		}
		shown := f.Shown[0]
		run, v := shown.History.Run, shown.Verdict
		fmt.Fprintf(&out, "%s with a quorum of %d, and %s\n", phrase.Count(run.Nodes, "node"), run.Quorum, phrase.Count(run.Clients, "client"))
		faults := faultsOf(shown.History)
		fmt.Fprintf(&out, "%s:\n", phrase.Count(len(faults), "fault"))
		for _, fault := range faults {
			fmt.Fprintf(&out, "    %s\n", fault)
		}
		fmt.Fprintf(&out, "%s: %s, %s, %s, %s, %s, %s\n", f.Outcome(), phrase.Counted(v.Asks, "ask"), phrase.Counted(v.Holds, "hold"), phrase.Counted(v.Denials, "denial"),
			phrase.Counted(v.Extensions, "extension"), phrase.Counted(v.Losses, "loss"), phrase.Counted(v.Writes, "write"))
		if f.MustFail && f.Failed {
			fmt.Fprintf(&out, "    because %s\n", f.Because)
		}
		for _, violation := range v.Violations {
			fmt.Fprintf(&out, "    %v\n", violation)
			if lines := linesOf(violation); lines != "" && h.cfg.history != "" {
				fmt.Fprintf(&out, "        %s: %s\n", h.cfg.history, lines)
			}
		}
		fmt.Fprintf(&out, "history: %s, digest %s", phrase.Counted(len(shown.History.Events), "event"), shown.History.Digest())
		if run.Arena != chaos.Model.Name {
			out.WriteString(" (only the model's is the same every time)")
		}
		out.WriteString("\n")
	}
	fmt.Fprint(h.Stdout, &out)
}

// faultsOf returns the faults of a history, a line each.
func faultsOf(history *chaos.History) []string {
	faults := []string{}
	for _, e := range history.Events {
		if e.Kind == chaos.Struck && e.Fault != nil {
			faults = append(faults, e.Fault.String())
		}
	}
	return faults
}

// linesOf returns in which lines of the history's file the events of a violation are.
func linesOf(v chaos.Violation) string {
	const most = 12
	var lines []string
	for _, i := range v.Events {
		lines = append(lines, strconv.Itoa(i+2))
	}
	switch {
	case len(lines) == 0:
		return ""
	case len(lines) > most:
		lines = append(lines[:most], "...")
	}
	return "lines " + strings.Join(lines, ", ")
}
