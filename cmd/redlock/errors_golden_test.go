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

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/internal/facts"
	"github.com/quorumlock/redlock/internal/testbed/memredis"
	"github.com/quorumlock/redlock/internal/testbed/redistest/golden"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
	"github.com/quorumlock/redlock/internal/wire"
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
	g.examined()
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
	g.env = []string{nodesVariable + "=" + strings.Join(nodes.URLs(), ",")}
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
	r.Env = append(append(os.Environ(), "PACE=quick", "GORACE=atexit_sleep_ms=0", ownerVariable+"=web-1", "PATH="+bin+":"+os.Getenv("PATH")), g.env...)
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
	code := main1(args, append(slices.Clone(g.env), "PATH="+os.Getenv("PATH"), configVariable+"="+os.DevNull, ownerVariable+"=web-1"), strings.NewReader(""), &stdout, &stderr)
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
		"run k -- no-such-command", "run k -- /dev/null", "run k -- true", "run k --embedded --node redis://127.0.0.1:1 -- true", "run k --embedded --config redlock.conf -- true",
		"lock", "lock k true", "lock k", "extend", "extend k", "extend a b", "unlock k", "unlock {}", "unlock k --token t --key", "unlock a b --token t", "unlock k --key b", "extend k --token t",
		"break", "break a b", "break k", "break k --yes", "break k --token t",
		"status", "watch k --every 1ms", "wait k", "doctor k", "doctor",
		"prepare k", "prepare --no-wait --timeout 1s", "prepare --no-wait --quorum", "prepare --quorum --reset-fences a:1", "prepare --fresh --reset-fences a:1", "prepare --no-wait --reset-fences a:1",
		"prepare --node redis://127.0.0.1:1 --reset-fences a:1",
		"members grow", "members add", "members --plan", "members --timeout 1s", "members add a:1 --programs-stopped",
		"bench k", "bench --for 99ms", "bench --callers 1,many", "bench --callers 4,4", "bench",
		"chaos k", "chaos --arena moon", "chaos --scenario crashing-node", "chaos --seed many", "chaos --nodes 0", "chaos --nodes 9", "chaos --schedules x", "chaos --ttl 1ms", "chaos --ttl 1000500us", "chaos --for 0s", "chaos --history h", "chaos --list --seed 1",
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
	g.env = []string{configVariable + "="}
	fmt.Fprintf(g, "\n%s=\n", configVariable)
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
	g.env = []string{nodesVariable + "=" + strings.Replace(g.nodes.URLs()[0], "//", "//me:wrong@", 1)}
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
	g.env = []string{nodesVariable + "=" + strings.Join(g.nodes.URLs()[:3], ",")}
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
	g.env = []string{nodesVariable + "=" + strings.Join(g.nodes.URLs(), ",")}
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

// examined are the findings of doctor, of nodes that are made up.
func (g *said) examined() {
	g.section("doctor: what it finds")
	at := func(n int) string { return fmt.Sprintf("10.0.0.%d:6379", n) }
	fine := func(n int) *patient {
		p := &patient{name: at(n), given: true, info: facts.Facts{"redis_version": "7.2.0", "run_id": fmt.Sprint(n), "role": "master", "scripts:kept": "false"}, pace: pace{fastest: time.Millisecond, roundTrip: time.Millisecond}, now: 1e15}
		p.opts = &redis.Options{Addr: p.name}
		return p
	}
	of := func(quarantine bool, all ...*patient) []finding {
		cfg := noFlags
		x := &examination{patients: all, set: setOf(slices.DeleteFunc(slices.Clone(all), func(p *patient) bool { return !p.given })), ttl: cfg.ttl}
		x.count()
		return findings(x, &cfg, quarantine)
	}
	// find shows what doctor finds when the first of three nodes is changed.
	find := func(when string, quarantine bool, change func(p *patient)) {
		all := []*patient{fine(1), fine(2), fine(3)}
		change(all[0])
		fmt.Fprintf(g, "\n%s\n", when)
		for _, f := range of(quarantine, all...) {
			mark := "?"
			if f.must {
				mark = "!"
			}
			fmt.Fprintf(g, "    %s %s: %s\n      %s\n", mark, strings.Join(f.nodes, ", "), f.what, f.todo)
		}
	}
	for _, c := range []struct{ when, text string }{
		{"it does not answer", "connection refused"}, {"it refuses the password", "WRONGPASS invalid username-password pair"}, {"it refuses commands", "NOPERM no permissions"}, {"it is full", "OOM command not allowed"},
		{"it is read-only", "READONLY You can't write against a read only replica."}, {"it cannot write to its disk", "MISCONF Redis is configured to save RDB snapshots"}, {"it wants replicas", "NOREPLICAS Not enough good replicas to write."},
		{"a script runs", "BUSY Redis is busy running a script."}, {"it loads its data", "LOADING Redis is loading the dataset in memory"},
	} {
		find(c.when, true, func(p *patient) { p.err = fmt.Errorf("%s", c.text) })
	}
	info := func(key, value string) func(*patient) { return func(p *patient) { p.info[key] = value } }
	find("the same server twice", true, info("run_id", "2"))
	find("a replica", true, func(p *patient) {
		p.info["role"], p.info["master_host"], p.info["master_port"] = "slave", "10.0.0.9", "6379"
	})
	find("a node of a cluster", true, info("cluster_enabled", "1"))
	find("it evicts", true, func(p *patient) { p.info["maxmemory_policy"], p.info["maxmemory"] = "allkeys-lru", "1000000" })
	find("it would evict", true, func(p *patient) { p.info["maxmemory_policy"], p.info["maxmemory"] = "allkeys-lru", "0" })
	find("it has a replica", true, info("connected_slaves", "1"))
	find("it may forget, and there is no quarantine", false, func(*patient) {})
	find("it is too old", true, info("redis_version", "6.2.14"))
	find("it says nothing of itself", true, func(p *patient) { p.info = facts.Facts{"role": "master"} })
	find("its clock is ahead of the others'", true, func(p *patient) { p.clock = time.Minute })
	find("its fences are ahead of the time", true, func(p *patient) { p.number = p.now + int64(24*time.Hour/time.Microsecond) })
	find("it is far away", true, func(p *patient) { p.roundTrip = time.Second })
	find("it is not near", true, func(p *patient) { p.roundTrip = 200 * time.Millisecond })
	find("it refuses to write a key", true, func(p *patient) { p.keyError = fmt.Errorf("NOPERM no permissions to run the 'eval' command") })
	find("it refuses to wake waiters", true, func(p *patient) { p.callError = fmt.Errorf("NOPERM no permissions to access a channel") })
	find("nodes on one host", true, func(p *patient) { p.opts = &redis.Options{Addr: "10.0.0.2:6380"} })
	// in has the nodes keep the description of one set, and the first of them something else.
	in := func(when string, members int, keeps func(d wire.Description) wire.Told) {
		all := []*patient{fine(1), fine(2), fine(3)}
		d := wire.Description{MaxTTL: 10_000, Epoch: 3, Set: "one", Members: []string{at(1), at(2), at(3), at(4)}[:members]}
		for _, p := range all[1:] {
			p.keeping.told = wire.Told{Self: p.name, Description: &d}
		}
		all[0].keeping.told = keeps(d)
		if members > len(all) {
			all = append(all, fine(members))
			all[members-1].given = false
		}
		fmt.Fprintf(g, "\n%s\n", when)
		for _, f := range of(true, all...) {
			fmt.Fprintf(g, "    %v %s: %s\n      %s\n", f.must, strings.Join(f.nodes, ", "), f.what, f.todo)
		}
	}
	in("it keeps no description", 3, func(wire.Description) wire.Told { return wire.Told{} })
	in("it keeps an earlier description", 3, func(d wire.Description) wire.Told { d.Epoch = 2; return wire.Told{Self: at(1), Description: &d} })
	in("it belongs to another set", 3, func(d wire.Description) wire.Told { d.Set = "other"; return wire.Told{Self: at(1), Description: &d} })
	in("a member was not given", 4, func(d wire.Description) wire.Told { return wire.Told{Self: at(1), Description: &d} })
	in("it was removed", 3, func(d wire.Description) wire.Told { return wire.Told{Self: at(9), Description: &d} })
	show := func(when string, all ...*patient) {
		fmt.Fprintf(g, "\n%s\n", when)
		for _, f := range of(true, all...) {
			fmt.Fprintf(g, "    ? %s: %s\n      %s\n", strings.Join(f.nodes, ", "), f.what, f.todo)
		}
	}
	show("two nodes", fine(1), fine(2))
	show("four nodes", fine(1), fine(2), fine(3), fine(4))
	late := fine(1)
	late.clock = -time.Second
	show("its clock is not this machine's", late)
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
	golden.EachSource(g.T, []string{".", "internal/explain", "internal/proc"}, func(name string, _ *token.FileSet, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || !slices.Contains([]string{"Fail", "say", "note", "result", "must", "bars", "think", "Errorf", "New", "untold", "Without"}, golden.Called(call)) {
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
