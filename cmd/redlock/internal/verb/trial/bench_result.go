package trial

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/quorumlock/redlock/cmd/redlock/internal/load"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
	"github.com/quorumlock/redlock/cmd/redlock/internal/reach"
)

// A benchReport is the result of redlock bench. Durations are in milliseconds.
type benchReport struct {
	Embedded    bool             `json:"embedded,omitempty"` // nodes inside this process
	Interrupted bool             `json:"interrupted,omitempty"`
	Key         string           `json:"key"`
	Quorum      int              `json:"quorum"`
	TTL         load.Millis      `json:"ttl_ms"`
	NodeTimeout load.Millis      `json:"node_timeout_ms"`
	Length      load.Millis      `json:"for_ms"`
	Nodes       []nodeFigures    `json:"nodes"`
	Callers     []callersFigures `json:"callers"`
	HandOver    *handOverFigures `json:"hand_over,omitempty"`
	Advice      []string         `json:"advice"`
}

// nodeFigures are the answers of a node to one step at a time.
type nodeFigures struct {
	Node string `json:"node"`
	load.Spread
	InMajority float64    `json:"in_majority"` // the share of its answers that belonged to the majority
	Failed     load.Tally `json:"failed,omitempty"`
}

// callersFigures are cycles of lock and unlock.
type callersFigures struct {
	Callers   int     `json:"callers"`
	PerSecond float64 `json:"per_second"`
	load.Spread
	troubles
}

// handOverFigures are those of one lock that several clients wait for.
type handOverFigures struct {
	Waiters   int         `json:"waiters"`
	PerSecond float64     `json:"per_second"`
	HandOver  load.Spread `json:"hand_over"`
	Wait      load.Spread `json:"wait"`
	troubles
}

type troubles struct {
	Failed load.Tally `json:"failed,omitempty"`
	Last   string     `json:"last_failure,omitempty"`
}

// rate returns n in a duration as a number per second, to a tenth; 0 if the duration is 0.
func rate(n uint64, in time.Duration) float64 {
	if in <= 0 {
		return 0
	}
	return math.Round(10*float64(n)/in.Seconds()) / 10
}

// heading returns what stands above the measurements.
func (b *bench) heading() string {
	each := b.cfg.length + b.cfg.length/10
	return fmt.Sprintf("%s, and a quorum is %d; TTL %v, so NodeTimeout is %v\nthe names of all locks begin with %s\n%d measurements of %v, with a warm-up each: about %v\n",
		phrase.Count(len(b.servers), "node"), b.report.Quorum, b.cfg.TTL, reach.NodeTimeout(b.cfg.TTL), b.cfg.key,
		len(b.cfg.callers)+2, b.cfg.length, phrase.Tenths(each*time.Duration(len(b.cfg.callers)+2)))
}

func (r *benchReport) nodesTable() string {
	if len(r.Nodes) == 0 {
		return ""
	}
	rows := [][]string{{"node", "p50", "p99", "longest", "in majority", "failed"}}
	for _, n := range r.Nodes {
		share := "-"
		if n.Count > 0 {
			share = fmt.Sprintf("%.0f %%", 100*n.InMajority)
		}
		rows = append(rows, append(append([]string{n.Node}, n.Cells()...), share, n.Failed.String()))
	}
	return "from asking a node until it has answered, one lock at a time\n\n" + phrase.Table(rows, 1, 2, 3, 4)
}

func (r *benchReport) callersTable() string {
	if len(r.Callers) == 0 {
		return ""
	}
	rows := [][]string{{"callers", "a second", "p50", "p99", "longest", "failed"}}
	failures := ""
	for _, c := range r.Callers {
		rows = append(rows, append(append([]string{phrase.Digits(c.Callers), phrase.PerSecond(c.PerSecond)}, c.Cells()...), c.Failed.String()))
		if c.Last != "" {
			failures += fmt.Sprintf("the last that failed of %s: %s\n", phrase.Count(c.Callers, "caller"), c.Last)
		}
	}
	return "lock and unlock, each caller with a lock of its own\n\n" + phrase.Table(rows, 0, 1, 2, 3, 4) + failures
}

func (r *benchReport) handOverTable() string {
	h := r.HandOver
	if h == nil {
		return ""
	}
	row := func(what, often string, s load.Spread) []string {
		mean := "-"
		if s.Count > 0 {
			mean = s.Mean.String()
		}
		return append(append([]string{what, often}, s.Cells()...), mean)
	}
	text := fmt.Sprintf("one lock that %d clients wait for again and again\n\n", h.Waiters) + phrase.Table([][]string{
		{"", "a second", "p50", "p99", "longest", "mean"},
		row("from a release to the next holder", phrase.PerSecond(h.PerSecond), h.HandOver),
		row("from the request to the lock", "", h.Wait),
	}, 1, 2, 3, 4, 5)
	if h.Wait.Mean > 0 {
		text += fmt.Sprintf("the longest wait is %.1f times the mean\n", h.Wait.Longest.Float()/h.Wait.Mean.Float())
	}
	if len(h.Failed) > 0 {
		text += fmt.Sprintf("failed: %v, the last: %s\n", h.Failed, h.Last)
	}
	return text
}

// items returns paragraphs, each after a dash, in lines that fit on a screen.
func items(all []string) string {
	const width = 86
	var out strings.Builder
	for _, text := range all {
		line := "-"
		for word := range strings.FieldsSeq(text) {
			if len(line)+1+len(word) > width {
				out.WriteString(line + "\n")
				line = " "
			}
			line += " " + word
		}
		out.WriteString(line + "\n")
	}
	return out.String()
}
