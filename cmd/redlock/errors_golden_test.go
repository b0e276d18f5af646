//go:build unix

package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorumlock/redlock/cmd/redlock/internal/reach"
	"github.com/quorumlock/redlock/internal/testbed/memredis"
	"github.com/quorumlock/redlock/internal/testbed/redistest/golden"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

var update = flag.Bool("update", false, "write testdata/errors.golden anew, and docs/top*")

const errorsGolden = "testdata/errors.golden"

// TestErrorsGolden provokes errors and messages of the command, and compares all of them with one
// file, in which they can be read. Those that it does not provoke are at the end of the file as they
// are in the source, so that no text is missing. With -update the file is written anew.
func TestErrorsGolden(t *testing.T) {
	t.Parallel()
	if !*update {
		need.Full(t) // it waits for what the command says when time has passed
	}
	g := &said{T: t, dir: t.TempDir() + "/"}
	g.WriteString("# What the command says\n\nEach error and each message, with what provokes it, and the exit status. Times, tokens,\nfences and errors of the network are replaced by words. Written by `go test ./cmd/redlock -run TestErrorsGolden -update`.\n")
	g.wrongUsage()
	g.wrongNodes()
	g.wrongConfig()
	g.noLock()
	g.held()
	g.handles()
	g.inspected()
	g.listed()
	g.recorded()
	g.changed()
	g.prepared()
	findings, _ := golden.Section(t, errorsGolden, "doctor: what it finds")
	g.WriteString(findings) // TestFindingsGolden in internal/verb/operate compares, and writes, this section
	g.rest()
	golden.Compare(t, errorsGolden, g.String(), *update, "go test ./cmd/redlock -run TestErrorsGolden -update")
}

// A said collects what a user reads.
type said struct {
	*testing.T
	strings.Builder
	dir   string // of files
	env   []string
	nodes *memredis.Cluster
}

func (g *said) section(heading string) { fmt.Fprintf(g, "\n## %s\n", heading) }

// on starts nodes, for what follows.
func (g *said) on(n int) {
	g.Helper()
	nodes, err := memredis.Start(n)
	if err != nil {
		g.Fatal(err)
	}
	g.Cleanup(nodes.Close)
	g.nodes = nodes
	g.env = []string{reach.NodesVariable + "=" + strings.Join(nodes.URLs(), ",")}
}

// ask sends a command to all nodes.
func (g *said) ask(command ...string) {
	g.Helper()
	for _, n := range g.nodes.Nodes {
		if _, err := ask(n.Addr(), command); err != nil {
			g.Fatal(err)
		}
	}
}

// A running is a redlock that runs.
type running struct {
	runs string // a file that is there once its command runs
	*exec.Cmd
	shown          string
	killed         bool // a node was killed meanwhile: when that is noticed, differs from run to run
	restarted      bool // a node was restarted meanwhile: if a request finds it down, differs from run to run
	stdout, stderr buffer
}

// start starts redlock.
func (g *said) start(args ...string) *running {
	g.Helper()
	self, err := os.Executable()
	if err != nil {
		g.Fatal(err)
	}
	r := &running{shown: strings.Join(args, " ")}
	bin := g.TempDir() // testscript looks at the name of the program
	if err := os.Symlink(self, filepath.Join(bin, "redlock")); err != nil {
		g.Fatal(err)
	}
	// The sleep of a command tells when it runs: the lock is held then, and not only on its way.
	r.runs = filepath.Join(bin, "runs")
	if err := os.WriteFile(filepath.Join(bin, "sleep"), []byte("#!/bin/sh\n: >"+r.runs+"\nPATH=${PATH#*:} exec sleep \"$@\"\n"), 0o700); err != nil {
		g.Fatal(err)
	}
	r.Cmd = exec.Command(filepath.Join(bin, "redlock"), args...)
	r.Env = append(append(os.Environ(), "PACE=quick", "GORACE=atexit_sleep_ms=0", reach.OwnerVariable+"=web-1", "PATH="+bin+":"+os.Getenv("PATH")), g.env...)
	r.Stdout, r.Stderr = &r.stdout, &r.stderr
	if err := r.Start(); err != nil {
		g.Fatal(err)
	}
	g.Cleanup(func() { _ = r.Process.Kill() })
	return r
}

// await waits until it has said something.
func (g *said) await(r *running, text string) {
	g.Helper()
	if !within(patience, func() bool { return strings.Contains(r.stderr.String()+r.stdout.String(), text) }) {
		g.Fatalf("%s: not %q within %v: %s", r.shown, text, patience, r.stderr.String())
	}
}

// ends waits for its end, and adds what it has said.
func (g *said) ends(when string, r *running) {
	g.Helper()
	_ = r.Wait()
	code := r.ProcessState.ExitCode()
	text := r.stderr.String()
	if r.killed {
		text = regexp.MustCompile(`(?m)^redlock: node down: .*\n`).ReplaceAllString(text, "")
	}
	if r.restarted {
		text = regexp.MustCompile(`(?m)^redlock: node (down|up): .*\n`).ReplaceAllString(text, "")
	}
	g.show(when, r.shown, code, text)
}

// says runs redlock, and adds what it says.
func (g *said) says(when string, args ...string) {
	g.Helper()
	g.ends(when, g.start(args...))
}

// refuses runs redlock with arguments that it refuses, in this process.
func (g *said) refuses(args ...string) {
	g.Helper()
	var stdout, stderr strings.Builder
	code := main1(args, append(slices.Clone(g.env), "PATH="+os.Getenv("PATH"), reach.ConfigVariable+"="+os.DevNull, reach.OwnerVariable+"=web-1"), strings.NewReader(""), &stdout, &stderr)
	shown := make([]string, len(args))
	for i, arg := range args {
		if shown[i] = arg; arg == "" || strings.ContainsAny(arg, " {\"") {
			shown[i] = "'" + arg + "'"
		}
		if len(arg) > 100 {
			shown[i] = arg[:3] + "..."
		}
	}
	g.show("", strings.Join(shown, " "), code, stderr.String())
}

func (g *said) show(when, command string, code int, stderr string) {
	if when != "" {
		when = "  # " + when
	}
	text := fmt.Sprintf("\n$ redlock %s%s\n", command, when)
	for line := range strings.Lines(stderr) {
		text += "    " + line
	}
	g.WriteString(g.steady(text))
	if code != 0 || stderr == "" {
		fmt.Fprintf(g, "    exit status %d\n", code)
	}
}

var (
	aToken = regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(\.@[^"\s]*)?|\b[0-9a-f]{8}…`)
	aFence = regexp.MustCompile(`\b\d{16}\b`)
	aFault = regexp.MustCompile(`unreachable: [^;)\n]*|timeout after TIME`)
	aCount = regexp.MustCompile(`after \d+ failed renewals?`)
	aSet   = regexp.MustCompile(`\bset [0-9a-f]{16}\b`)
	aTime  = regexp.MustCompile(`(--?[a-z]\S* )?-?\b(\d+(\.\d+)?(h|m|s|ms|µs|ns))+\b`)
)

// steady replaces what differs from run to run.
func (g *said) steady(text string) string {
	if g.nodes != nil {
		for i, n := range g.nodes.Nodes {
			text = strings.ReplaceAll(text, n.Addr(), string(rune('a'+i))+":6379")
		}
	}
	text = strings.ReplaceAll(text, g.dir, "")
	text = aFence.ReplaceAllString(aToken.ReplaceAllString(text, "TOKEN"), "FENCE")
	if g.nodes == nil {
		return text // no time has been measured
	}
	text = aSet.ReplaceAllString(text, "set SET")
	text = aCount.ReplaceAllString(text, "after 2 failed renewals")
	return aFault.ReplaceAllString(aTime.ReplaceAllStringFunc(text, func(found string) string {
		if strings.HasPrefix(found, "-") && strings.Contains(found, " ") {
			return found
		}
		return aTime.ReplaceAllString(found, "${1}TIME")
	}), "unreachable: ERROR")
}

func (g *said) wrongUsage() {
	g.section("Wrong usage")
	for _, line := range []string{
		"unlocked", "help nothing", "version 2", "completion csh",
		"run", "run k", "run k true", "run --key", "run --key --ttl 5s -- true", "run --kye a -- true", "run k -nx -- true", "run --key a --ttl 5s --ttl 9s -- true", "run k --shell=true -- true",
		"run redlock:set -- true", "run k --ttl 10 -- true", "run k --ttl 0s -- true", "run k --ttl 9999h -- true", "run k --ttl 1000500us -- true", "run k --timeout -1s -- true", "run k -n -w 1s -- true",
		"run k -E many -- true", "run k --slots 0 -- true", "run k --slots 2 --shared -- true", "run k --slots 2 --key b -- true", "run k --max-ttl 0s -- true",
		"run k --lost-signal STOP -- true", "run k --lost-grace 6s -- true", "run k --lost-grace -1s -- true", "run k --max-hold 99ms -- true", "run k --min-hold 9s --max-hold 8s -- true",
		"run k --once 24h -n -- true", "run k --once 24h -w 1s -- true", "run k --once 24h --min-hold 1m -- true", "run k --once 24h --max-hold 1m -- true", "run k --once 0s -- true",
		"run k -- no-such-command", "run k -- /dev/null", "run k -- true", "run k --embedded --node redis://127.0.0.1:1 -- true", "run k --embedded --config redlock.conf -- true",
		"lock", "lock k true", "lock k", "extend", "extend k", "extend a b", "unlock k", "unlock {}", "unlock k --token t --key", "unlock a b --token t", "unlock k --key b", "extend k --token t",
		"break", "break a b", "break k", "break k --yes", "break k --token t",
		"status", "watch k --every 1ms", "wait k", "doctor k", "doctor",
		"prepare k", "prepare --no-wait --timeout 1s", "prepare --no-wait --quorum", "prepare --quorum --reset-fences a:1", "prepare --fresh --reset-fences a:1", "prepare --no-wait --reset-fences a:1",
		"prepare --node redis://127.0.0.1:1 --reset-fences a:1",
		"members grow", "members add", "members --plan", "members --timeout 1s", "members add a:1 --programs-stopped",
		"bench k", "bench --for 99ms", "bench --callers 1,many", "bench --callers 4,4", "bench",
		"chaos k", "chaos --arena moon", "chaos --scenario crashing-node", "chaos --seed many", "chaos --nodes 0", "chaos --nodes 9", "chaos --schedules x", "chaos --ttl 1ms", "chaos --ttl 1000500us", "chaos --for 0s", "chaos --history h", "chaos --list --seed 1", "chaos --coverage --arena miniredis",
	} {
		g.refuses(strings.Fields(line)...)
	}
	g.refuses("run", "", "--", "true")
	g.refuses("run", "k", "--separator", "", "--", "true")
	g.refuses("run", "k", "--config", "", "--", "true")
	g.refuses("unlock", "k", "--token", "")
	g.refuses("break", "k", "--token", "")
	g.refuses("bench", "--key", "")
	g.refuses("chaos", "--report", "")
	g.refuses("prepare", "--prefix", strings.Repeat("p", 2000), "--node", "redis://127.0.0.1:1")
	g.refuses("unlock", `{"name":"k","ttl_ns":10000000000}`, "--node", "redis://127.0.0.1:1", "--prefix", "other:")
}

func (g *said) wrongNodes() {
	g.section("Nodes")
	for _, node := range []string{"", "localhost", "http://a:6379", "redis://:pass/word@a", "redis://a:6379/zero", "redis://:a,b@c", "redis://a:6379?colour=red"} {
		g.refuses("status", "k", "--node", node)
	}
	g.refuses("status", "k", "--node", "redis://127.0.0.1:1,redis://127.0.0.1:1")
	g.file("empty", "# none\n")
	g.file("lines", "one\ntwo\n")
	g.refuses("status", "k", "--nodes", g.dir+"absent")
	g.refuses("status", "k", "--nodes", g.dir+"empty")
}

func (g *said) file(name, text string) {
	g.Helper()
	if err := os.WriteFile(g.dir+name, []byte(text), 0o600); err != nil {
		g.Fatal(err)
	}
}

func (g *said) wrongConfig() {
	g.section("The configuration file")
	g.refuses("status", "k", "--config", g.dir+"absent")
	for _, text := range []string{
		"nods = redis://127.0.0.1:1", "prefix =", "redis://:secret=@127.0.0.1", "prefix = a\nprefix = b", "node = localhost", "max-ttl = soon", "max-ttl = 1ms", "user = locks",
		"password = secret\npassword-file = redlock.password", "password-file = absent", "password-file = lines", "tls-cert = a.pem", "tls-ca = absent", "tls-ca = redlock.conf", "tls-cert = absent\ntls-key = absent",
		"node = redis://127.0.0.1:1\ntls-ca = a.pem", "prefix = " + strings.Repeat("p", 2000),
	} {
		g.file("redlock.conf", text+"\n\n")
		fmt.Fprintf(g, "\nredlock.conf:\n")
		for line := range strings.Lines(text) {
			fmt.Fprintf(g, "    %.40s\n", strings.TrimSuffix(line, "\n"))
		}
		g.refuses("status", "k", "--config", g.dir+"redlock.conf", "--node", "redis://127.0.0.1:1")
	}
	g.file("redlock.conf", "node = redis://:secret@127.0.0.1:1\nmax-ttl = 5s\n")
	if err := os.Chmod(g.dir+"redlock.conf", 0o604); err != nil {
		g.Fatal(err)
	}
	fmt.Fprintf(g, "\nredlock.conf, which every user can read:\n    node = redis://:secret@127.0.0.1:1\n    max-ttl = 5s\n")
	g.refuses("lock", "k", "--config", g.dir+"redlock.conf")
	g.env = []string{reach.ConfigVariable + "="}
	fmt.Fprintf(g, "\n%s=\n", reach.ConfigVariable)
	g.refuses("status", "k")
	g.env = nil
}

func (g *said) noLock() {
	g.section("No lock")
	g.on(1)
	holder := g.start("run", "k", "--", "sleep", "60")
	if !within(patience, func() bool { return slices.Contains(g.nodes.Nodes[0].Keys(), "k") }) {
		g.Fatal("the holder has no lock")
	}
	g.says("another client holds it", "run", "k", "-n", "--", "true")
	g.says("another client holds it", "lock", "k", "-w", "500ms")
	waiter := g.start("run", "k", "--", "true")
	g.await(waiter, "waiting for")
	_ = waiter.Process.Signal(syscall.SIGTERM)
	g.ends("SIGTERM meanwhile", waiter)
	g.says("", "wait", "k", "--timeout", "0s")
	_ = holder.Process.Signal(syscall.SIGTERM)
	_ = holder.Wait()

	g.ask("HSET", "hash", "a", "b")
	g.says("the key is no lock", "run", "hash", "-n", "--", "true")
	g.ask("FLUSHALL")
	g.says("the node has lost its data", "run", "k", "-n", "--", "true")
	g.says("", "run", "k", "-w", "1s", "--", "true")
	waiter = g.start("run", "k", "--", "true")
	g.await(waiter, "has to wait")
	_ = waiter.Process.Signal(syscall.SIGTERM)
	g.ends("without a limit, and SIGTERM meanwhile", waiter)
	g.nodes.Nodes[0].Kill()
	g.says("the node is down", "run", "k", "-n", "--", "true")
	g.on(1)
	g.nodes.Nodes[0].SetInfo("role", "slave")
	g.nodes.Nodes[0].SetInfo("master_host", "10.0.0.9")
	g.nodes.Nodes[0].SetInfo("master_port", "6379")
	g.says("the node is a replica", "run", "k", "-n", "--", "true")
	g.on(1)
	g.env = []string{reach.NodesVariable + "=" + strings.Replace(g.nodes.URLs()[0], "//", "//me:wrong@", 1)}
	g.says("a wrong password", "run", "k", "-n", "--", "true")
}

func (g *said) held() {
	g.section("While the command runs")
	g.on(1)
	r := g.start("run", "k", "--ttl", "2s", "--", "sleep", "60")
	held := func() {
		if !within(patience, func() bool { _, err := os.Stat(r.runs); return err == nil }) {
			g.Fatal("the lock is not held")
		}
	}
	held()
	g.ask("DEL", "k")
	g.ends("the lock is deleted on the node", r)

	r = g.start("run", "k", "--ttl", "2s", "--", "sleep", "60")
	held()
	r.killed = true
	g.nodes.Nodes[0].Kill()
	g.ends("the node goes down", r)

	g.on(1)
	r = g.start("run", "k", "--ttl", "4s", "--", "sleep", "60")
	held()
	r.killed = true
	g.nodes.Nodes[0].Kill()
	g.await(r, "renewal failed")
	if err := g.nodes.Nodes[0].Restart(true); err != nil {
		g.Fatal(err)
	}
	g.await(r, "renewal recovered")
	g.await(r, "has no vote")
	_ = r.Process.Signal(syscall.SIGTERM)
	g.ends("the node goes down, and is up again in time; then SIGTERM", r)

	g.on(1)
	g.says("", "run", "k", "--max-hold", "2s", "--", "sleep", "60")
	r = g.start("elect", "e", "--", "true")
	g.await(r, "stands for election again")
	_ = r.Process.Signal(syscall.SIGTERM)
	g.ends("then SIGTERM", r)
	r = g.start("run", "k", "--", "sleep", "0.3")
	held()
	r.killed = true
	g.nodes.Nodes[0].Kill()
	g.ends("the node is down when the command ends", r)

	g.on(3)
	r = g.start("run", "k", "--ttl", "2s", "--", "sleep", "60")
	g.await(g.restarted(r), "has no vote")
	_ = r.Process.Signal(syscall.SIGTERM)
	g.ends("a node is restarted; then SIGTERM", r)
	g.on(1)
	_ = g.start("run", "k", "--ttl", "10s", "--", "true").Wait()
	g.says("another program has --ttl 10s", "run", "k", "--ttl", "9s", "--", "true")
	g.says("", "run", "k", "--embedded", "--", "true")
}

// restarted restarts the last of three nodes, while redlock holds a lock there.
func (g *said) restarted(r *running) *running {
	last := g.nodes.Nodes[2]
	if !within(patience, func() bool { return slices.Contains(last.Keys(), "k") }) {
		g.Fatal("the lock is not held")
	}
	r.restarted = true
	if err := last.Restart(true); err != nil {
		g.Fatal(err)
	}
	return r
}

func (g *said) handles() {
	g.section("lock, extend and unlock")
	g.on(1)
	r := g.start("lock", "k")
	_ = r.Wait()
	handle := strings.TrimSpace(r.stdout.String())
	with := func(when, verb string, args ...string) {
		g.Helper()
		r := g.start(append([]string{verb, handle}, args...)...)
		r.shown = strings.Join(append([]string{verb, `"$lock"`}, args...), " ")
		g.ends(when, r)
	}
	with("", "unlock", "--prefix", "p:")
	g.says("", "unlock", "k", "--token", "other")
	g.says("", "unlock", "k", "--token", aToken.FindString(handle))
	with("it is released", "unlock")
	with("it is released", "extend")
	g.says("it is released", "break", "k", "--yes", "--token", aToken.FindString(handle))
	_ = g.start("lock", "s", "--slots", "2").Wait()
	r = g.start("status", "s", "--json")
	_ = r.Wait()
	g.says("the token of a slot", "unlock", "s", "--token", aToken.FindString(r.stdout.String()))
	g.on(1) // another set, with a separator
	_ = g.start("lock", "a/b", "--separator", "/").Wait()
	r = g.start("status", "a/b", "--json", "--separator", "/")
	_ = r.Wait()
	g.says("the token of a/b", "unlock", "a", "--separator", "/", "--token", aToken.FindString(r.stdout.String()))
	g.says("the token of a/b", "break", "a", "--separator", "/", "--yes", "--token", aToken.FindString(r.stdout.String()))
	g.says("", "break", "a/b", "--separator", "/", "--yes", "--token", aToken.FindString(r.stdout.String()))
	g.nodes.Nodes[0].Kill()
	g.says("the node is down", "break", "k", "--yes", "--token", "TOKEN")
	with("the node is down", "unlock")
	with("the node is down", "extend")
}

func (g *said) inspected() {
	g.section("status and wait")
	g.on(1)
	g.ask("FLUSHALL")
	g.says("the node has lost its data", "status", "k")
	g.says("", "wait", "k", "--timeout", "0s")
	g.nodes.Nodes[0].Kill()
	g.says("the node is down", "status", "k")
	g.says("", "wait", "k", "--timeout", "0s")
	g.says("", "bench", "--timeout", "0s")
}

func (g *said) listed() {
	g.section("ls")
	for _, line := range []string{"a b", "--sort size", "--every 1s", "--watch --every 1ms", "--limit 3"} {
		g.refuses(append([]string{"ls"}, strings.Fields(line)...)...)
	}
	g.refuses("ls", "")
	g.on(3)
	g.says("", "ls")
	if _, err := ask(g.nodes.Nodes[0].Addr(), []string{"FLUSHALL"}); err != nil {
		g.Fatal(err)
	}
	g.nodes.Nodes[1].Kill()
	g.says("a node has lost its data, another one is down", "ls")
}

func (g *said) recorded() {
	g.section("record and explain")
	for _, line := range []string{"record", "record a b", "record f --every 1ms", "record f --max-size 5", "record f --max-size big", "record f --max-size 99999999999G", "record f --json", "explain", "explain a b --record f", "explain k", "explain k --record f", "explain k --at noon --record f"} {
		g.refuses(strings.Fields(line)...)
	}
	g.refuses("explain", "k", "--record", "")
	g.on(1)
	file := g.dir + "notes"
	if err := os.WriteFile(file, []byte("buy milk\n"), 0o600); err != nil {
		g.Fatal(err)
	}
	g.says("a file of something else", "record", file)
	g.says("", "explain", "k", "--record", file)
	g.says("no regular file", "record", os.DevNull)
	record := g.dir + "record"
	text := "{\"time\":\"2026-01-31T03:00:00Z\",\"set\":{\"nodes\":[\"a\"],\"quorum\":1}}\n"
	for i, fence := range []int{7, 6} {
		token := fmt.Sprintf("%d.@mwxh1y8f@@web", i)
		text += fmt.Sprintf("{\"time\":\"2026-01-31T03:00:%02dZ\",\"node\":\"a\",\"name\":\"k\",\"token\":%q,\"ttl_ms\":9000,\"fence\":%d,\"by\":[\"set\"]}\n", 10*i+1, token, fence)
		text += fmt.Sprintf("{\"time\":\"2026-01-31T03:00:%02dZ\",\"node\":\"a\",\"name\":\"k\",\"by\":[\"del\"]}\n", 10*i+8)
	}
	if err := os.WriteFile(record, []byte(text), 0o600); err != nil {
		g.Fatal(err)
	}
	g.env = append(g.env, "TZ=UTC")
	g.says("", "explain", "k", "--record", record, "--at", "1999-01-01 00:00")
	g.says("", "explain", "k", "--record", record, "--html", g.dir)
	g.says("fences that go back", "explain", "k", "--record", record)
}

func (g *said) changed() {
	g.section("members")
	g.on(4)
	more := g.nodes.Nodes[3].URL()
	g.env = []string{reach.NodesVariable + "=" + strings.Join(g.nodes.URLs()[:3], ",")}
	g.says("no program has locked", "members", "add", more)
	_ = g.start("run", "k", "--ttl", "400ms", "--", "true").Wait()
	for _, line := range []string{"add d", "add redis://:pw@d:6379", "add rediss://d:6379", "add redis://d:6379/3", "remove d:6379", "replace d:6379 e:6379", "replace d:6379 d:6379", "set quorum 1", "set quorum many", "set max-ttl 1ms", "set separator /", "set colour red"} {
		g.says("", append([]string{"members"}, strings.Fields(line)...)...)
	}
	g.says("", "members", "set", "max-ttl", "200ms", "--plan")
	g.says("", "members", "add", more)
	g.says("", "members", "remove", g.nodes.Nodes[3].Addr(), "--timeout", "1s")
	g.nodes.Nodes[0].Kill()
	g.says("one of four is down", "members", "remove", g.nodes.Nodes[1].Addr(), "--timeout", "1s")
	g.nodes.Nodes[1].Kill()
	g.says("two are down", "members")
	g.says("two are down", "members", "add", "redis://127.0.0.1:1")
}

func (g *said) prepared() {
	g.section("prepare")
	g.on(3)
	for _, n := range g.nodes.Nodes[1:] {
		n.Kill()
	}
	g.nodes.Nodes = g.nodes.Nodes[:1]
	g.env = []string{reach.NodesVariable + "=" + strings.Join(g.nodes.URLs(), ",")}
	g.ask("FLUSHALL")
	g.says("the node is new", "prepare", "--timeout", "0s")
	g.says("", "prepare", "--timeout", "500ms")
	g.says("", "prepare", "--no-wait")
	waiter := g.start("prepare")
	g.await(waiter, "has no vote")
	time.Sleep(100 * time.Millisecond)
	_ = waiter.Process.Signal(syscall.SIGTERM)
	g.ends("SIGTERM meanwhile", waiter)
	g.ask("FLUSHALL")
	g.says("the node is new", "prepare", "--fresh")
	g.on(2)
	if _, err := ask(g.nodes.Nodes[1].Addr(), []string{"FLUSHALL"}); err != nil {
		g.Fatal(err)
	}
	g.says("one of two nodes is new", "prepare", "--fresh", "--timeout", "0s")
	g.on(1)
	g.nodes.Nodes[0].Kill()
	g.says("the node is down", "prepare", "--timeout", "0s")
	g.says("", "prepare", "--no-wait")
	g.says("", "prepare", "--fresh")
	g.says("", "prepare", "--reset-fences", g.nodes.Nodes[0].Addr())
	g.nodes = nil
	g.env = nil
}

// rest are the texts in the source that nothing above has provoked.
func (g *said) rest() {
	shown := g.String()
	verbs := regexp.MustCompile(`%[-+# 0]*(\[\d+\])?[0-9.]*[a-zA-Z]`)
	missing := make(map[string][]string) // by file
	note := func(file, text string) {
		for _, part := range verbs.Split(text, -1) {
			if part = strings.TrimSpace(part); regexp.MustCompile(`[a-zA-Z]{2}`).MatchString(part) && !strings.Contains(shown, part) {
				if !slices.Contains(missing[file], text) {
					missing[file] = append(missing[file], text)
				}
				return
			}
		}
	}
	g.section("Not provoked here: as in the source")
	golden.EachSource(g.T, slices.Concat([]string{"."}, directories(g.T, "internal/*"), directories(g.T, "internal/verb/*")), func(name string, _ *token.FileSet, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || !slices.Contains([]string{"Fail", "Say", "say", "Note", "note", "Result", "result", "must", "bars", "think", "Errorf", "New", "Unknown", "Without", "Text"}, golden.Called(call)) {
				return true
			}
			for _, arg := range call.Args {
				if text := joined(arg); strings.Contains(text, " ") {
					note(name, text)
				}
			}
			return true
		})
	})
	for _, file := range slices.Sorted(maps.Keys(missing)) {
		fmt.Fprintf(g, "\n%s\n", file)
		for _, text := range missing[file] {
			fmt.Fprintf(g, "    %s\n", strings.ReplaceAll(text, "\n", `\n`))
		}
	}
}

// directories are those that match a pattern.
func directories(t *testing.T, pattern string) []string {
	all, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// joined is the text of a string, or of several that are joined; what is no literal is %v.
func joined(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return text
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return joined(e.X) + joined(e.Y)
		}
	case *ast.CallExpr:
		if golden.Called(e) == "Sprintf" {
			return joined(e.Args[0])
		}
	}
	return "%v"
}
