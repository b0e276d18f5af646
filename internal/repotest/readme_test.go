package repotest_test

import (
	"cmp"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/internal/testbed/pgtest"
	"github.com/quorumlock/redlock/internal/testbed/port"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// TestFirstTenMinutes types what docs/start.md has a stranger type, from the servers to a
// locked cron job and a program whose database checks the fencing token, and compares the output with what
// the page shows. The log has the time of each step and each part.
func TestFirstTenMinutes(t *testing.T) {
	redistest.Servers(t, 0) // skips the test if there is no redis-server
	section := sectionOf(t, "docs/start.md", "## The first ten minutes")
	for _, written := range []string{"7101", "7102", "7103"} {
		claim, err := port.Reserve()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(claim.Close)
		free := strconv.Itoa(claim.Number)
		section = strings.ReplaceAll(section, written, free)
		t.Cleanup(func() { // however the test ends
			c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + free, MaxRetries: -1, DialerRetries: 1})
			defer c.Close()
			c.ShutdownNoSave(t.Context())
		})
	}
	steps := stepsOf(section)
	for _, part := range []string{"The command", "The library"} {
		if !slices.ContainsFunc(steps, func(s step) bool { return s.part == part }) {
			t.Fatalf("the first ten minutes have no part %q", part)
		}
	}
	env := published(t)
	if err := databaseClient(t); err == nil {
		env = append(env, "DATABASE_URL=postgres:///postgres?user=postgres&sslmode=disable&host="+pgtest.Start(t))
	} else {
		t.Run("the program with a fencing token", func(t *testing.T) { need.Skip(t, need.WithPostgres, err) })
		steps = slices.DeleteFunc(steps, func(s step) bool {
			return s.part == "The library" && !strings.Contains(s.code, "shutdown")
		})
	}
	typed(t, t.TempDir(), env, steps)
}

// databaseClient says why the part with a database cannot be typed.
func databaseClient(t *testing.T) error {
	if err := pgtest.Available(t); err != nil {
		return err
	}
	if _, err := exec.LookPath("psql"); err != nil {
		if os.Getenv(pgtest.Require) == "1" {
			t.Fatal(err)
		}
		return err
	}
	// The driver, which only the recipes require, comes from the local cache.
	download := exec.CommandContext(t.Context(), "go", "mod", "download", "github.com/lib/pq")
	download.Dir = "recipes"
	if out, err := download.CombinedOutput(); err != nil {
		if os.Getenv(pgtest.Require) == "1" {
			t.Fatalf("%v: %v\n%s", download.Args, err, out)
		}
		return fmt.Errorf("%v: %w", download.Args, err)
	}
	return nil
}

// TestUnitTestOfAStranger types docs/testing.md's test in a module that has nothing else, and runs it: with a
// lock that is lost and one that goes to the next process it takes less than two seconds. The page of redlocktest has
// the same test.
func TestUnitTestOfAStranger(t *testing.T) {
	steps := stepsOf(sectionOf(t, "docs/testing.md", "## In the test process"))
	var code string
	for _, s := range steps {
		code += s.code
	}
	for _, line := range []string{"nodes.Lose(", "nodes.Hold(", "other.Release(", "cd report\n"} {
		if !strings.Contains(code, line) {
			t.Errorf("docs/testing.md does not have people type %s", line)
		}
	}
	doc, err := parser.ParseFile(token.NewFileSet(), "redlocktest/doc.go", nil, parser.ParseComments|parser.PackageClauseOnly)
	if err != nil {
		t.Fatal(err)
	}
	if test := indented(doc.Doc.Text(), "package "); test == "" || !strings.Contains(code, "\n"+strings.TrimSpace(test)+"\n") {
		t.Errorf("docs/testing.md has another test than the package comment of redlocktest:\n%s", test)
	}

	need.Full(t)
	dir, env := t.TempDir(), published(t)
	typed(t, dir, env, steps)
	// Once more, with all that it needs compiled: how long that takes is printed, and depends on what else the machine does.
	run := exec.CommandContext(t.Context(), "go", "test", "-count=1", ".")
	run.Dir = filepath.Join(dir, "report")
	run.Env = append(os.Environ(), env...)
	begun := time.Now()
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", run.Args, err, out)
	}
	t.Logf("%5.1fs  go test, with a lost lock and a waiter", time.Since(begun).Seconds())
}

// indented returns the code block of a comment that begins with this text.
func indented(comment, with string) string {
	var code strings.Builder
	for line := range strings.Lines(comment) {
		text, in := strings.CutPrefix(line, "\t")
		switch {
		case in && (code.Len() > 0 || strings.HasPrefix(text, with)):
			code.WriteString(text)
		case code.Len() > 0 && strings.TrimSpace(line) == "":
			code.WriteString(line)
		case code.Len() > 0:
			return code.String()
		}
	}
	return code.String()
}

// A step is what is typed at once, or written to a file.
type step struct {
	part  string // the heading above it
	title string // "": the first line of code
	code  string
	want  string // what it prints; "": anything
}

// sectionOf returns a section of a document, from its heading to the next of that level.
func sectionOf(t *testing.T, doc, heading string) string {
	t.Helper()
	_, section, ok := strings.Cut(readFile(t, doc), "\n"+heading+"\n")
	if !ok {
		t.Fatalf("%s has no %q", doc, heading)
	}
	level, _, _ := strings.Cut(heading, " ")
	section, _, _ = strings.Cut(section, "\n"+level+" ")
	return section
}

// stepsOf returns what a section has people type: commands, commands with their output, lines of a crontab, and
// files, whose first line is a comment with the name.
func stepsOf(section string) (steps []step) {
	part := ""
	for _, m := range regexp.MustCompile("(?ms)^###+ (.*?)$|^```(sh|console|crontab|go)\n(.*?)^```$").FindAllStringSubmatch(section, -1) {
		s := step{part: part, code: m[3]}
		switch m[2] {
		case "":
			part = m[1]
			continue
		case "console":
			s.code, s.want, _ = strings.Cut(strings.TrimPrefix(m[3], "$ "), "\n")
		case "crontab":
			s.title, s.code = "the job of the crontab", cron(m[3])
		case "go":
			name := regexp.MustCompile(`^// (\w+\.go)\n`).FindStringSubmatch(m[3])
			if name == nil {
				continue // a fragment, to be read
			}
			s.code = "cat >" + name[1] + " <<'END'\n" + m[3] + "END"
		}
		steps = append(steps, s)
	}
	return steps
}

// cron does at once what cron does on four machines when it is time: it runs the command with the variables of
// the crontab, a short PATH and nothing else. Three machines begin at the same moment. The clock of the fourth is
// behind: it begins when the job has written its line. The machine that keeps the lock for longer is then shut
// down. What a job prints would be mailed, so it must not.
func cron(crontab string) string {
	var vars, code string
	for line := range strings.Lines(crontab) {
		line = strings.TrimSuffix(line, "\n")
		if m := regexp.MustCompile(`^(\w+)=(.*)$`).FindStringSubmatch(line); m != nil {
			vars += " " + m[1] + "='" + m[2] + "'"
			continue
		}
		fields := strings.SplitN(line, " ", 6)
		command, _, percent := strings.Cut(fields[len(fields)-1], "%")
		if len(fields) < 6 || percent {
			return "echo 'no line of a crontab'; false"
		}
		code += `machine() { cd && exec env -i HOME="$HOME" LOGNAME=stranger SHELL=/bin/sh PATH=/usr/bin:/bin` + vars + " /bin/sh -c 'exec " +
			strings.ReplaceAll(command, "'", `'\''`) + `' >"$HOME/mail.$1" 2>&1; }
machine 1 & machine 2 & machine 3 &
# The third machine may keep the lock. wait -n would miss a machine that ends in the same moment as another one.
until [ "$(jobs -rp | wc -l)" -le 1 ]; do sleep 0.1; done
timeout 60 sh -c 'until [ -s "$HOME/nightly.log" ]; do sleep 0.1; done'
(machine 4) || true
jobs -p | xargs -r kill || true # none, if none keeps the lock
wait
for i in 1 2 3 4; do [ ! -s "$HOME/mail.$i" ] || { echo "mailed by machine $i:"; cat "$HOME/mail.$i"; false; }; done
`
	}
	return code
}

// typed runs steps in one shell, as a stranger would who begins in an empty home, and compares what they print
// with what they should.
func typed(t *testing.T, home string, env []string, steps []step) {
	t.Helper()
	script := "set -eu\nexec 2>&1\n"
	for _, s := range steps {
		script += fmt.Sprintf("%s\nprintf '\\n@@ %%s\\n' \"$(date +%%s.%%N)\"\n", s.code)
	}
	// When the time is up, timeout ends all that was started: its group of processes.
	bash := exec.CommandContext(t.Context(), "timeout", "--kill-after=5", "240", "bash", "-c", script)
	bash.Dir, bash.WaitDelay = home, 10*time.Second
	bash.Env = append(append(os.Environ(), "HOME="+home, "GOPATH="+filepath.Join(home, "go")), env...)
	begun := time.Now()
	out, err := bash.CombinedOutput()
	said := strings.Split(string(out), "\n@@ ")
	if err != nil || len(said) != len(steps)+1 {
		t.Fatalf("%v after %d of %d steps:\n%s", err, len(said)-1, len(steps), out)
	}
	first := float64(begun.UnixNano()) / 1e9
	last, parts, took := first, []string{}, map[string]float64{}
	for i, s := range steps {
		at, rest, _ := strings.Cut(said[i+1], "\n")
		now, err := strconv.ParseFloat(at, 64)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%5.1fs  %s", now-last, cmp.Or(s.title, strings.SplitN(s.code, "\n", 2)[0]))
		if s.want != "" && shape(said[i]) != shape(s.want) {
			t.Errorf("%s\nsays\n%s\nand not\n%s", s.code, said[i], s.want)
		}
		if !slices.Contains(parts, s.part) {
			parts = append(parts, s.part)
		}
		took[s.part] += now - last
		last, said[i+1] = now, rest
	}
	for _, part := range parts {
		t.Logf("%5.2f min  %s", took[part]/60, cmp.Or(part, "before that"))
	}
	t.Logf("%5.2f min  in all", (last-first)/60)
}

// shape removes from a text what differs each time.
func shape(text string) string {
	text = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`).ReplaceAllString(text, "TOKEN")
	text = regexp.MustCompile(`token [0-9a-f]{8}…`).ReplaceAllString(text, "token TOKEN…")
	text = regexp.MustCompile(`TOKEN\.@\w+@@`).ReplaceAllString(text, "TOKEN.@SINCE@@")
	if host, err := os.Hostname(); err == nil { // the owner of a lock, with the process id
		text = regexp.MustCompile(`(?m)(^|[ @])`+regexp.QuoteMeta(host)+`:`).ReplaceAllString(text, "${1}web-1:")
	}
	text = regexp.MustCompile(`\bset [0-9a-f]{16}\b`).ReplaceAllString(text, "set NAME")
	text = regexp.MustCompile(`[0-9][0-9.]*(ms|s)?`).ReplaceAllString(text, "N")
	return strings.Join(strings.Fields(text), " ")
}
