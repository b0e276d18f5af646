// Command redlock runs a command while holding a lock over several Redis
// servers, so that of all the machines that start it only one does at a time.
//
//	redlock run --key nightly --node redis://a:6379,redis://b:6379,redis://c:6379 -- ./backup.sh
//
// It renews the lock while the command runs, ends the command if the lock is
// lost, and exits with the command's own status. See redlock help run.
//
//	redlock prepare --node redis://a:6379,redis://b:6379,redis://c:6379
//
// has new servers ready for it, which otherwise the first lock waits for.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/chaos"
	"github.com/quorumlock/redlock/internal/printable"
)

// What we exit with for reasons of our own, when there is no command's status to
// pass on. The first four are from sysexits.h, where scripts look them up; the
// last two are the shell's. Being lost is next to them and not one of them, for
// no command that follows sysexits.h uses that number itself.
const (
	exitUsage         = 64
	exitNoQuorum      = 69 // for chaos: the arena cannot be had
	exitCannotWrite   = 73
	exitBusy          = 75
	exitLost          = 79
	exitNotExecutable = 126
	exitNotFound      = 127
	exitSignal        = 128 // plus the signal's number

	exitDemo       = 1 // the demo's story went another way than told
	exitSick       = 1 // doctor has found what has to change
	exitViolations = 1 // chaos has found what must not be
)

func main() {
	chaos.ClientMain() // does not return if chaos has started us to be a client
	code := main1(os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr)
	if code == exitSignal+int(syscall.SIGINT) {
		dieOf(syscall.SIGINT)
	}
	os.Exit(code)
}

// A command is one call of redlock: what it gets from outside.
type command struct {
	env    []string
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer // the child's; our own lines go through say

	mu sync.Mutex // one line at a time
}

// main1 is main without the process, and returns the exit code.
func main1(args, env []string, stdin io.Reader, stdout, stderr io.Writer) int {
	// go-redis logs to stderr what the hooks tell in better words, or what is none
	// of the user's business.
	redis.SetLogger(silence{})

	c := &command{env: env, stdin: stdin, stdout: stdout, stderr: stderr}
	code, err := c.dispatch(args)
	var f *failure
	switch {
	case errors.As(err, &f):
		c.say("%s", f.text)
		if f.hint != "" {
			c.say("hint: %s", f.hint)
		}
		return f.code
	case err != nil:
		c.say("%v", err)
		return exitNoQuorum
	}
	return code
}

func (c *command) dispatch(args []string) (int, error) {
	if len(args) == 0 {
		fmt.Fprint(c.stderr, usage)
		return exitUsage, nil
	}
	name, args := args[0], args[1:]
	switch name {
	case "run", "elect":
		return c.run(name, args)
	case "lock":
		return c.lock(args)
	case "extend", "unlock":
		return c.takeUp(name, args)
	case "status", "watch", "wait":
		return c.look(name, args)
	case "doctor":
		return c.doctor(args)
	case "prepare":
		return c.prepare(args)
	case "bench":
		return c.bench(args)
	case "demo":
		if err := noMore(name, args); err != nil {
			return 0, err
		}
		return c.demo()
	case "chaos":
		return c.chaos(args)
	case "completion":
		return 0, c.completion(args)
	case "version", "--version":
		if err := noMore(name, args); err != nil {
			return 0, err
		}
		fmt.Fprintln(c.stdout, version())
		return 0, nil
	case "keep": // ourselves, started by run
		return keep(args, c.stdin), nil
	case "begin": // likewise
		return begin(args, c.env), nil
	case "help", "-h", "--help":
		return 0, c.help(args)
	}
	return 0, fail(exitUsage, "the commands are run, elect, lock, extend, unlock, status, watch, wait, doctor, prepare, bench, demo, chaos, completion, version and help; see redlock help",
		"unknown command %q", name)
}

// helpOn are the texts on commands that have flags.
var helpOn = map[string]string{
	"run": usageRun, "elect": usageElect, "lock": usageLock, "extend": usageLock, "unlock": usageLock, "status": usageLook, "watch": usageLook, "wait": usageLook, "doctor": usageDoctor, "prepare": usagePrepare, "bench": usageBench, "chaos": usageChaos,
}

func (c *command) help(args []string) error {
	text := usage
	if len(args) > 0 {
		text = helpOn[args[0]]
	}
	if text == "" || len(args) > 1 {
		return fail(exitUsage, "there is redlock help, and redlock help with one of "+strings.Join(slices.Sorted(maps.Keys(helpOn)), ", "), "no help on %q", strings.Join(args, " "))
	}
	fmt.Fprint(c.stdout, text)
	return nil
}

func noMore(name string, args []string) error {
	if len(args) > 0 {
		return fail(exitUsage, "see redlock help", "%s takes no arguments, and was given %q", name, args[0])
	}
	return nil
}

// version is what the go command has noted in the binary about its origin.
func version() string {
	name, revision, modified := "(unknown)", "", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		name = info.Main.Version
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				revision = ", commit " + s.Value[:min(12, len(s.Value))]
			case s.Key == "vcs.modified" && s.Value == "true":
				modified = " and changes"
			}
		}
	}
	return fmt.Sprintf("redlock %s (%s %s/%s%s%s)", name, runtime.Version(), runtime.GOOS, runtime.GOARCH, revision, modified)
}

// A failure is an end that has its own exit code: what is wrong, and what the
// user can do about it.
type failure struct {
	code       int
	text, hint string
}

func (f *failure) Error() string { return f.text }

func fail(code int, hint, format string, args ...any) *failure {
	return &failure{code: code, text: fmt.Sprintf(format, args...), hint: hint}
}

// plain is an error without the name that the library's errors bring along, and
// that say puts in front of each line.
func plain(err error) string { return strings.TrimPrefix(err.Error(), "redlock: ") }

// say writes to stderr, whole lines and each with our name, since the command
// writes there too. Hooks call it from any goroutine. What steers terminals is escaped;
// line ends are not, so what others have set is printable before it is part of a text.
func (c *command) say(format string, args ...any) {
	var out strings.Builder
	for line := range strings.SplitSeq(fmt.Sprintf(format, args...), "\n") {
		out.WriteString("redlock: " + printable.Text(strings.TrimPrefix(line, "redlock: ")) + "\n")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	io.WriteString(c.stderr, out.String())
}

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}
