// Package script holds the Lua that runs on the nodes, a file for each step. Every file's header says its keys,
// arguments and reply, and why it is atomic. A word that begins with a dollar sign is a constant (constants.go). The
// scripts may use what Redis 7.0 has: older servers have no vote.
package script

import (
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"strings"
)

var (
	//go:embed kinds.lua
	kinds string
	//go:embed hold.lua
	hold string
	//go:embed drop.lua
	drop string
	//go:embed counters.lua
	counters string
	//go:embed queue.lua
	queue string
	//go:embed give.lua
	give string
	//go:embed acquire_usual.lua
	acquireUsual string
	//go:embed acquire.lua
	acquire string
	//go:embed raise.lua
	raise string
	//go:embed extend.lua
	extend string
	//go:embed leave.lua
	leave string
	//go:embed yield.lua
	yield string
	//go:embed release_usual.lua
	releaseUsual string
	//go:embed release.lua
	release string
	//go:embed inspect.lua
	inspect string
	//go:embed wake.lua
	wake string
	//go:embed break.lua
	breaks string

	// Join and Probe run once for each connection, and the others seldom: they are sent whole, and not loaded.
	//go:embed join.lua
	join string
	Join = bare(join)
	//go:embed probe.lua
	probe string
	Probe = bare(probe)
	//go:embed choose.lua
	choose string
	Choose = bare(choose)
	//go:embed merge.lua
	merge string
	Merge = bare(merge)
	Wake  = bare(kinds + queue + wake)
	Break = bare(kinds + drop + queue + give + breaks)
)

// A Script is the source of one step, and the hash under which a server has it loaded.
type Script struct{ Source, Hash string }

var (
	Raise   = New(bare(kinds + counters + raise))
	Extend  = New(bare(kinds + hold + extend))
	Release = New(bare(releaseUsual + kinds + drop + queue + give + release))
	Leave   = New(bare(kinds + queue + leave))
	Yield   = New(bare(kinds + drop + queue + give + yield))
	Inspect = New(bare(inspect))
)

var acquireCode = bare(acquireUsual + kinds + hold + drop + counters + queue + acquire)

// Acquire returns the acquire script for the server process with this run_id, which is part of the script's text. So
// another process, such as the same server after a restart, does not have the script and answers NOSCRIPT. That reveals
// a restart even behind a proxy that keeps the connection.
func Acquire(runID string) Script { return New("-- for " + runID + "\n" + acquireCode) }

// All lists the scripts that a client loads when it connects to the server process with this run_id.
func All(runID string) []Script {
	return []Script{Acquire(runID), Raise, Extend, Release, Leave, Yield, Inspect}
}

// bare returns a script's source with its constants replaced, and without comment lines, indentation and spaces: a
// server that has not got the password yet closes the connection at an argument of more than 16 KB.
func bare(source string) string {
	var code strings.Builder
	for line := range strings.Lines(source) {
		words := strings.TrimSpace(line)
		if words == "" || strings.HasPrefix(words, "--") {
			continue
		}
		for i, part := range strings.Split(words, "'") { // every other part is text
			if i > 0 {
				code.WriteString("'")
			}
			if i%2 == 0 {
				part = tight.Replace(part)
			}
			code.WriteString(part)
		}
		code.WriteString("\n")
	}
	return constants.Replace(code.String())
}

// tight removes spaces that Lua does not need.
var tight = strings.NewReplacer(", ", ",", " = ", "=", " == ", "==", " ~= ", "~=", " <= ", "<=", " >= ", ">=", " < ", "<", " > ", ">", " + ", "+", " * ", "*", " / ", "/")

// New makes a Script of source, which it hashes as it is: the caller has called bare before.
func New(source string) Script {
	sum := sha1.Sum([]byte(source))
	return Script{Source: source, Hash: hex.EncodeToString(sum[:])}
}
