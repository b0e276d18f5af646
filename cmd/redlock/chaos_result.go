package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/quorumlock/redlock/chaos"
)

// tell says what was found, and gives the exit code.
func (h *hunt) tell() (int, error) {
	code, verdict, schedules := 0, "kept", 0
	for i := range h.findings {
		schedules += h.findings[i].Schedules
		if !h.findings[i].OK() {
			code, verdict = exitViolations, "violated"
		}
	}
	if schedules == 0 { // which proves nothing
		code, verdict = exitViolations, "nothing was run"
	}
	if h.stopped != nil {
		number, _ := h.stopped.(syscall.Signal)
		code = exitSignal + int(number)
	}
	var err error
	switch {
	case h.cfg.json:
		err = h.printJSON(h.summary(verdict))
	case h.cfg.replays():
		h.tellReplay()
	default:
		h.tellAll()
	}
	if failed := h.write(); failed != nil {
		h.say("%v", failed)
		if code == 0 {
			code = exitCannotWrite
		}
	}
	return code, err
}

// tellAll prints a table, what is behind it, and the verdict.
func (h *hunt) tellAll() {
	rows := [][]string{{"arena", "scenario", "schedules", "holds", "outcome", "per second"}}
	for i := range h.findings {
		f := &h.findings[i]
		rows = append(rows, []string{f.Arena, f.Scenario, digits(f.Schedules), digits(f.Holds), f.Outcome(), perSecond(f.PerSecond)})
	}
	var out strings.Builder
	out.WriteString("\n" + table(rows, 2, 3, 5))
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
	out.WriteString(bad.String()) // last, where one looks first
	fmt.Fprintf(h.stdout, "%s\n%s\n", &out, h.verdict())
}

// verdict is the last line.
func (h *hunt) verdict() string {
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
		said = fmt.Sprintf("%s in %s", counted(violations, "violation"), count(bad, "scenario"))
	case bad > 0:
		said = "what must fail has not failed"
	default:
		said = "no promise broken"
	}
	said = fmt.Sprintf("seed %d: %s: %s with %s in %v", h.cfg.seed, said, counted(schedules, "schedule"), counted(holds, "hold"),
		time.Since(h.begin).Round(100*time.Millisecond))
	if must > 0 {
		said += fmt.Sprintf("; of %s that must fail, %d did", count(must, "scenario"), failed)
	}
	if h.stopped != nil {
		said += "; ended early by " + h.stopped.String()
	}
	return said
}

// tellReplay prints all there is to say of one schedule.
func (h *hunt) tellReplay() {
	var out strings.Builder
	for i := range h.findings {
		f := &h.findings[i]
		if len(f.Shown) == 0 {
			fmt.Fprintln(&out, f.Tell())
			continue
		}
		shown := f.Shown[0]
		run, v := shown.History.Run, shown.Verdict
		fmt.Fprintf(&out, "%s with a quorum of %d, and %s\n", count(run.Nodes, "node"), run.Quorum, count(run.Clients, "client"))
		faults := faultsOf(shown.History)
		fmt.Fprintf(&out, "%s:\n", count(len(faults), "fault"))
		for _, fault := range faults {
			fmt.Fprintf(&out, "    %s\n", fault)
		}
		fmt.Fprintf(&out, "%s: %s, %s, %s, %s, %s, %s\n", f.Outcome(), counted(v.Asks, "ask"), counted(v.Holds, "hold"), counted(v.Denials, "denial"),
			counted(v.Extensions, "extension"), counted(v.Losses, "loss"), counted(v.Writes, "write"))
		if f.MustFail && f.Failed {
			fmt.Fprintf(&out, "    because %s\n", f.Because)
		}
		for _, violation := range v.Violations {
			fmt.Fprintf(&out, "    %v\n", violation)
			if lines := linesOf(violation); lines != "" && h.cfg.history != "" {
				fmt.Fprintf(&out, "        %s: %s\n", h.cfg.history, lines)
			}
		}
		fmt.Fprintf(&out, "history: %s, digest %s", counted(len(shown.History.Events), "event"), shown.History.Digest())
		if run.Arena != chaos.Model.Name {
			out.WriteString(" (only the model's is the same every time)")
		}
		out.WriteString("\n")
	}
	fmt.Fprint(h.stdout, &out)
}

// faultsOf lists what went wrong in a history, in words.
func faultsOf(history *chaos.History) []string {
	faults := []string{}
	for _, e := range history.Events {
		if e.Kind == chaos.Struck && e.Fault != nil {
			faults = append(faults, e.Fault.String())
		}
	}
	return faults
}

// linesOf says where the events of a violation are in a history's file.
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

// What --json prints.
type (
	summary struct {
		Verdict     string           `json:"verdict"` // "kept", "violated" or "nothing was run"
		Interrupted bool             `json:"interrupted,omitempty"`
		Seed        uint64           `json:"seed"`
		Version     string           `json:"version"`
		Seconds     float64          `json:"seconds"`
		Arenas      []arenaSummary   `json:"arenas"`
		Skipped     []string         `json:"skipped,omitempty"`
		Findings    []findingSummary `json:"findings"`
		Saved       []string         `json:"saved,omitempty"`
	}
	arenaSummary struct {
		Name      string  `json:"name"`
		Schedules int     `json:"schedules"`
		Seconds   float64 `json:"seconds"`
	}
	findingSummary struct {
		chaos.Finding
		Outcome string         `json:"outcome"`
		OK      bool           `json:"ok"`
		Error   string         `json:"error,omitempty"`
		Shown   []shownSummary `json:"shown"`
	}
	shownSummary struct {
		Seed       uint64            `json:"seed"`
		Violations []chaos.Violation `json:"violations"`
		Faults     []string          `json:"faults,omitempty"` // of one that is replayed
		Events     int               `json:"events"`
		Digest     string            `json:"digest"`
		Replay     string            `json:"replay"`
	}
)

func (h *hunt) summary(verdict string) *summary {
	s := &summary{
		Verdict: verdict, Interrupted: h.stopped != nil, Seed: h.cfg.seed, Version: version(),
		Seconds: seconds(time.Since(h.begin)), Skipped: h.skipped, Saved: h.saved,
	}
	for i := range h.findings {
		f := &h.findings[i]
		found := findingSummary{Finding: *f, Outcome: f.Outcome(), OK: f.OK(), Shown: []shownSummary{}}
		if f.Error != nil {
			found.Error = f.Error.Error()
		}
		for _, shown := range f.Shown {
			entry := shownSummary{
				Seed: shown.History.Run.Seed, Violations: append([]chaos.Violation{}, shown.Verdict.Violations...),
				Events: len(shown.History.Events), Digest: shown.History.Digest(), Replay: shown.Replay,
			}
			if h.cfg.replays() {
				entry.Faults = faultsOf(shown.History)
			}
			found.Shown = append(found.Shown, entry)
		}
		s.Findings = append(s.Findings, found)
	}
	for _, p := range h.parts {
		a := arenaSummary{Name: p.Arena.Name, Seconds: seconds(p.took)}
		for i := range h.findings {
			if h.findings[i].Arena == a.Name {
				a.Schedules += h.findings[i].Schedules
			}
		}
		s.Arenas = append(s.Arenas, a)
	}
	return s
}

func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1000) / 1000 }

func (c *command) printJSON(v any) error {
	out := json.NewEncoder(c.stdout)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	if err := out.Encode(v); err != nil {
		return fail(exitCannotWrite, "", "stdout: %v", err)
	}
	return nil
}

// table puts rows into columns, of which some have numbers in them.
func table(rows [][]string, numbers ...int) string {
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], len(cell))
		}
	}
	for _, i := range numbers {
		for _, row := range rows {
			row[i] = strings.Repeat(" ", width[i]-len(row[i])) + row[i]
		}
	}
	var out strings.Builder
	for _, row := range rows {
		line := ""
		for i, cell := range row {
			line += cell + strings.Repeat(" ", width[i]-len(cell)+2)
		}
		out.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return out.String()
}

// digits writes 12345 as 12,345.
func digits(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// counted is a large number of something.
func counted(n int, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case strings.HasSuffix(what, "s"):
		return digits(n) + " " + what + "es"
	}
	return digits(n) + " " + what + "s"
}

// perSecond leaves out digits that mean nothing.
func perSecond(x float64) string {
	if x >= 10 {
		return digits(int(math.Round(x)))
	}
	return strconv.FormatFloat(x, 'g', 2, 64)
}
