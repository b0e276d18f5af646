// Command redlock runs a command while holding a lock over several Redis
// servers, so that of all the machines that start it only one does at a time.
//
//	redlock run deploy --node redis://a:6379,redis://b:6379,redis://c:6379 -- ./deploy.sh
//
// It renews the lock while the command runs, ends the command if the lock is
// lost, and exits with the command's own status. See redlock help run.
//
//	redlock prepare --node redis://a:6379,redis://b:6379,redis://c:6379
//
// waits until new servers may vote, for which the first lock has to wait otherwise.
package main

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/pflag"

	"github.com/quorumlock/redlock/chaos"
	"github.com/quorumlock/redlock/cmd/redlock/internal/console"
	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/cmd/redlock/internal/proc"
	"github.com/quorumlock/redlock/cmd/redlock/internal/verb/lock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/verb/look"
	"github.com/quorumlock/redlock/cmd/redlock/internal/verb/operate"
	"github.com/quorumlock/redlock/cmd/redlock/internal/verb/record"
	"github.com/quorumlock/redlock/cmd/redlock/internal/verb/run"
	"github.com/quorumlock/redlock/cmd/redlock/internal/verb/trial"
)

// go-redis logs to stderr what hooks report in better words, or what does not concern the user.
func init() { redis.SetLogger(silence{}) }

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

func main() {
	chaos.ClientMain() // does not return if chaos has started this process as a client
	code := main1(os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr)
	if code == exit.Signal+int(syscall.SIGINT) {
		proc.DieOf(syscall.SIGINT)
	}
	os.Exit(code)
}

// main1 is main without the process: it gets what a process has, and returns the exit code.
func main1(args, env []string, stdin io.Reader, stdout, stderr io.Writer) int {
	c := console.New(env, stdin, stdout, stderr)
	defer c.Close()
	code, err := dispatch(c, args)
	var f *exit.Failure
	if why := c.Unwritten(); why != nil && !errors.As(err, &f) {
		err = why
	}
	switch {
	case errors.As(err, &f) && f.Silent:
		return f.Code
	case errors.As(err, &f):
		c.Say("%s", f.Text)
		if f.Hint != "" {
			c.Say("hint: %s", f.Hint)
		}
		return f.Code
	case err != nil:
		c.Say("%v", err)
		return exit.NoQuorum
	}
	return code
}

// A verb is one command of redlock. Each package below internal/verb has a family of verbs and imports no other
// family; TestVerbs in internal/repotest checks it.
type verb struct {
	name string
	help string // the name of its help
	run  func(c *console.Console, name string, args []string) (code int, err error)
}

// verbs returns all verbs, in the order of the help.
func verbs() []verb {
	return []verb{
		{"run", "run", run.Run},
		{"elect", "elect", run.Elect},
		{"lock", "lock", lock.Lock},
		{"extend", "lock", lock.TakeUp},
		{"unlock", "lock", lock.TakeUp},
		{"break", "break", lock.Break},
		{"status", "status", look.Inspect},
		{"watch", "status", look.Inspect},
		{"wait", "status", look.Inspect},
		{"ls", "ls", look.List},
		{"top", "top", look.Top},
		{"record", "record", record.Record},
		{"explain", "explain", record.Explain},
		{"doctor", "doctor", operate.Doctor},
		{"prepare", "prepare", operate.Prepare},
		{"members", "members", operate.Members},
		{"bench", "bench", trial.Bench},
		{"demo", "demo", trial.Demo},
		{"chaos", "chaos", trial.Chaos},
		{"completion", "completion", func(c *console.Console, _ string, args []string) (int, error) {
			return 0, completion(c, names(), topics, args)
		}},
		{"version", "version", version},
		{"help", "redlock", func(c *console.Console, _ string, args []string) (int, error) { return 0, help(c, args) }},
	}
}

// names returns the names of the verbs.
func names() (all []string) {
	for _, v := range verbs() {
		all = append(all, v.name)
	}
	return all
}

// synonyms are other names of verbs.
var synonyms = map[string]string{"--version": "version", "-h": "help", "--help": "help"}

func dispatch(c *console.Console, args []string) (int, error) {
	if len(args) == 0 {
		text, err := usage("redlock")
		fmt.Fprint(c.Stderr, text)
		return exit.Usage, err
	}
	name, args := args[0], args[1:]
	if name == proc.KeepVerb { // a redlock that redlock run has started
		return proc.Keep(args, c.Env), nil
	}
	for _, v := range verbs() {
		if v.name != cmp.Or(synonyms[name], name) {
			continue
		}
		code, err := v.run(c, name, args)
		if errors.Is(err, pflag.ErrHelp) {
			return 0, help(c, []string{v.name})
		}
		return code, err
	}
	all := names()
	last := len(all) - 1
	return 0, exit.Fail(exit.Usage, "the commands are "+strings.Join(all[:last], ", ")+" and "+all[last]+"; see redlock help",
		"unknown command %q", name)
}

//go:embed usage
var usages embed.FS

func usage(name string) (string, error) {
	text, err := usages.ReadFile("usage/" + name + ".txt")
	return string(text), err
}

// topics are helps that belong to no verb.
var topics = []string{"config", "json"}

// help is redlock help, and the --help of each verb.
func help(c *console.Console, args []string) error {
	name, about := "redlock", names()
	if len(args) == 1 && (args[0] == "-h" || args[0] == "--help") {
		args = nil
	}
	if len(args) > 0 {
		name = ""
	}
	for _, v := range verbs() {
		if len(args) == 1 && v.name == args[0] {
			name = v.help
		}
	}
	if len(args) == 1 && slices.Contains(topics, args[0]) {
		name = args[0]
	}
	if name == "" {
		about = append(about, topics...)
		slices.Sort(about)
		return exit.Fail(exit.Usage, "there is redlock help, and redlock help with one of "+strings.Join(about, ", "), "no help on %q", strings.Join(args, " "))
	}
	text, err := usage(name)
	fmt.Fprint(c.Stdout, text)
	return err
}
