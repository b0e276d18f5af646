//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/quorumlock/redlock/cmd/redlock/internal/reach"
	"github.com/quorumlock/redlock/internal/testbed/faultproxy"
	"github.com/quorumlock/redlock/internal/testbed/memredis"
	"github.com/quorumlock/redlock/internal/testbed/redisproc"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// TestScripts runs the scripts in testdata: https://pkg.go.dev/github.com/rogpeppe/go-internal/testscript
// describes the format, and steps what is added to it. The condition [full] is true where the
// environment asks for tests that take seconds.
func TestScripts(t *testing.T) {
	if need.Raced {
		need.Full(t) // its programs wait in real time, with timeouts that are too short for the race detector
	}
	runScripts(t, testscript.Params{Dir: "testdata"})
}

// runScripts runs the scripts that p names, with these variables set.
func runScripts(t *testing.T, p testscript.Params, vars ...string) {
	p.Deadline = time.Now().Add(10 * time.Minute) // a script that hangs says where, long before the test command gives up
	p.Setup = func(env *testscript.Env) error {
		env.Vars = append(env.Vars, "GORACE=atexit_sleep_ms=0") // or each program takes a second longer under -race
		env.Vars = append(env.Vars, vars...)
		env.Values[stageKey{}] = &stage{t: env.T().(testing.TB), programs: make(map[string]*program), env: env.Vars}
		return nil
	}
	p.Condition = func(condition string) (bool, error) {
		if condition != "full" {
			return false, fmt.Errorf("no such condition")
		}
		return need.IsFull(), nil
	}
	p.Cmds = make(map[string]func(*testscript.TestScript, bool, []string))
	for name, step := range steps {
		p.Cmds[name] = func(ts *testscript.TestScript, neg bool, args []string) {
			if neg {
				ts.Fatalf("unsupported: ! %s", name)
			}
			step(script{ts, ts.Value(stageKey{}).(*stage)}, args)
		}
	}
	testscript.Run(t, p)
}

// A stage is what a script has besides its files: nodes, and programs that run beside it.
type stage struct {
	t        testing.TB
	env      []string // what the script begins with
	nodes    *memredis.Cluster
	servers  []*redisproc.Server
	programs map[string]*program
}

type stageKey struct{}

// A script is one that runs.
type script struct {
	*testscript.TestScript
	*stage
}

func (s script) number(text string) int {
	n, err := strconv.Atoi(text)
	s.Check(err)
	return n
}

func (s script) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	s.Check(err)
	return d
}

// eventually waits until a condition is true.
func (s script) eventually(cond func() bool) {
	if !within(patience, cond) {
		s.Fatalf("not within %v", patience)
	}
}

// addrs are the nodes'.
func (s script) addrs() (addrs []string) {
	if s.nodes != nil {
		for _, node := range s.nodes.Nodes {
			addrs = append(addrs, node.Addr())
		}
	}
	for _, server := range s.servers {
		addrs = append(addrs, server.Addr)
	}
	return addrs
}

// name sets the variables that name the nodes.
func (s script) name() {
	var urls []string
	for i, addr := range s.addrs() {
		_, port, err := net.SplitHostPort(addr)
		s.Check(err)
		s.Setenv(fmt.Sprint("NODE", i), addr)
		s.Setenv(fmt.Sprint("PORT", i), port)
		urls = append(urls, "redis://"+addr)
	}
	s.Setenv("NODES", strings.Join(urls, ","))
}

// ask sends a command to a node.
func ask(addr string, command []string) (reply any, err error) {
	words := make([]any, len(command))
	for i, word := range command {
		words[i] = word
	}
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()
	return rdb.Do(context.Background(), words...).Result()
}

// A program runs beside a script. testscript has programs in the background, too, but what
// those have written is there only when they have ended.
type program struct {
	cmd            *exec.Cmd
	stdout, stderr buffer
	ended          chan struct{}
	err            error
}

func (s script) start(argv []string) *program {
	ctx, cancel := context.WithCancel(context.Background())
	p := &program{ended: make(chan struct{})}
	p.cmd = exec.CommandContext(ctx, argv[0], argv[1:]...)
	p.cmd.Env = slices.Clone(s.env)
	for _, name := range []string{reach.NodesVariable, reach.OwnerVariable, "TRACEPARENT", "PACE", "PROGRESS"} { // testscript does not tell which variables a script has set
		if value := s.Getenv(name); value != "" {
			p.cmd.Env = append(p.cmd.Env, name+"="+value)
		}
	}
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	p.cmd.WaitDelay = patience / 4 // a process that still has the pipes then has outlived it
	if err := p.cmd.Start(); err != nil {
		cancel()
		s.Fatalf("%v", err)
	}
	go func() {
		defer close(p.ended)
		p.err = p.cmd.Wait()
	}()
	s.Defer(func() {
		cancel()
		<-p.ended
	})
	return p
}

func (s script) program(name string) *program {
	p := s.programs[name]
	if p == nil {
		s.Fatalf("no program %s was started", name)
	}
	return p
}

// show makes the output of a program so far the one that stdout, stderr and capture look at.
func (s script) show(p *program) {
	io.WriteString(s.Stdout(), p.stdout.String())
	io.WriteString(s.Stderr(), p.stderr.String())
}

var signals = map[string]os.Signal{
	"HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "QUIT": syscall.SIGQUIT, "TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL,
	"STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT, "USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2,
}

// steps are the commands that scripts have besides those of testscript.
var steps = map[string]func(s script, args []string){
	// exits CODE PROGRAM [ARG ...] runs a program, which must end with that code.
	"exits": func(s script, args []string) {
		want, code, err := s.number(args[0]), 0, s.Exec(args[1], args[2:]...)
		if why := new(exec.ExitError); errors.As(err, &why) {
			code = why.ExitCode()
		} else {
			s.Check(err)
		}
		if code != want {
			s.Fatalf("it has ended with %d", code)
		}
	},
	// start NAME PROGRAM [ARG ...] runs it beside the script.
	"start": func(s script, args []string) { s.programs[args[0]] = s.start(args[1:]) },
	// await NAME PATTERN waits until its stdout or stderr has the pattern.
	"await": func(s script, args []string) {
		p, pattern := s.program(args[0]), regexp.MustCompile("(?m)"+args[1])
		found := within(patience, func() bool {
			return pattern.MatchString(p.stdout.String()) || pattern.MatchString(p.stderr.String())
		})
		if s.show(p); !found {
			s.Fatalf("not within %v", patience)
		}
	},
	// grows FILE PATTERN waits until the file, which a program writes, has the pattern.
	"grows": func(s script, args []string) {
		pattern := regexp.MustCompile("(?m)" + args[1])
		s.eventually(func() bool {
			text, err := os.ReadFile(s.MkAbs(args[0]))
			return err == nil && pattern.Match(text)
		})
	},
	// ends NAME [CODE] waits until it ends, with that code; without CODE with 0.
	"ends": func(s script, args []string) {
		p, code := s.program(args[0]), 0
		if len(args) > 1 {
			code = s.number(args[1])
		}
		select {
		case <-p.ended:
		case <-time.After(patience):
			s.show(p)
			s.Fatalf("it has not ended within %v", patience)
		}
		s.show(p)
		if errors.Is(p.err, exec.ErrWaitDelay) {
			s.Fatalf("it has left something behind")
		}
		if got := p.cmd.ProcessState.ExitCode(); got != code {
			s.Fatalf("it has ended with %d", got)
		}
	},
	// signal NAME SIGNAL
	"signal": func(s script, args []string) { s.Check(s.program(args[0]).cmd.Process.Signal(signals[args[1]])) },
	// capture NAME PATTERN sets $NAME to the pattern's group in the last stdout.
	"capture": func(s script, args []string) {
		m := regexp.MustCompile(args[1]).FindStringSubmatch(s.ReadFile("stdout"))
		if m == nil {
			s.Fatalf("no match")
		}
		s.Setenv(args[0], m[1])
	},
	// gone PID waits until that process has ended, even if its parent has not reaped it.
	"gone": func(s script, args []string) {
		pid := s.number(args[0])
		s.eventually(func() bool {
			stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			return syscall.Kill(pid, 0) == syscall.ESRCH || bytes.Contains(stat, []byte(") Z "))
		})
	},
	// reaped PID waits until the parent of a process has noticed that it has ended.
	"reaped": func(s script, args []string) {
		pid := s.number(args[0])
		s.eventually(func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH })
	},

	// nodes N starts nodes: $NODES, and $NODE0, $NODE1 ... their host:port.
	"nodes": func(s script, args []string) {
		nodes, err := memredis.Start(s.number(args[0]))
		s.Check(err)
		s.Defer(nodes.Close)
		s.nodes = nodes
		s.name()
	},
	// servers N is nodes N with new redis-servers.
	"servers": func(s script, args []string) {
		s.servers = redistest.NewServers(s.t, s.number(args[0]))
		s.name()
	},
	// olds N is servers N of a Redis before 7.0.
	"olds": func(s script, args []string) {
		s.servers = redistest.OldServers(s.t, s.number(args[0]))
		s.name()
	},
	// clocks N is servers N that have votes, and whose clocks can be set.
	"clocks": func(s script, args []string) {
		s.servers = redistest.ClockServers(s.t, s.number(args[0]))
		s.name()
	},
	// clock I D sets a server's clock forward by so much.
	"clock": func(s script, args []string) {
		s.Check(s.servers[s.number(args[0])].StepClock(s.duration(args[1])))
	},
	// restart I restarts a node, an embedded one with its data, a server without.
	"restart": func(s script, args []string) {
		i := s.number(args[0])
		if s.nodes != nil {
			s.Check(s.nodes.Nodes[i].Restart(true))
			return
		}
		s.Check(s.servers[i].Restart())
	},
	// forget I ... deletes all the data of nodes.
	"forget": func(s script, args []string) {
		for _, i := range args {
			_, err := ask(s.Getenv("NODE"+i), []string{"FLUSHALL"})
			s.Check(err)
		}
	},
	// mute: $MUTE is a node that takes connections and never answers.
	"mute": func(s script, _ []string) {
		l, err := net.Listen("tcp", "127.0.0.1:0") // the kernel takes them
		s.Check(err)
		s.Defer(func() { l.Close() })
		s.Setenv("MUTE", "redis://"+l.Addr().String())
	},
	// down I ... kills nodes.
	"down": func(s script, args []string) {
		for _, i := range args {
			if s.nodes != nil {
				s.nodes.Nodes[s.number(i)].Kill()
			} else {
				s.servers[s.number(i)].Kill()
			}
		}
	},
	// info I FIELD VALUE sets a field of a node's INFO.
	"info": func(s script, args []string) { s.nodes.Nodes[s.number(args[0])].SetInfo(args[1], args[2]) },
	// redis COMMAND ... on every node; $REPLY is the last node's reply.
	"redis": func(s script, args []string) {
		for _, addr := range s.addrs() {
			reply, err := ask(addr, args)
			s.Check(err)
			s.Setenv("REPLY", fmt.Sprint(reply))
		}
	},
	// at I COMMAND ... is redis, on one node.
	"at": func(s script, args []string) {
		_, err := ask(s.Getenv("NODE"+args[0]), args[1:])
		s.Check(err)
	},
	// slow I D: $SLOW is a node, over a link on which each byte takes so long.
	"slow": func(s script, args []string) {
		proxy, err := faultproxy.Listen(s.Getenv("NODE" + args[0]))
		s.Check(err)
		s.Defer(proxy.Close)
		proxy.SetDelay(s.duration(args[1]))
		s.Setenv("SLOW", "redis://"+proxy.Addr())
	},
	// renewed KEY N waits until the first node's TTL of the key has gone up N times.
	"renewed": func(s script, args []string) {
		rdb := redis.NewClient(&redis.Options{Addr: s.addrs()[0]})
		defer rdb.Close()
		times, before := s.number(args[1]), time.Duration(0)
		s.eventually(func() bool {
			ttl := rdb.PTTL(context.Background(), args[0]).Val()
			if ttl > before && before > 0 {
				times--
			}
			before = ttl
			return times == 0
		})
	},
	// free: no node has any key of a lock, sooner than the default TTL could do it.
	"free": func(s script, _ []string) {
		var left []string
		if !within(3*time.Second, func() bool {
			left = left[:0]
			if s.nodes != nil {
				for _, node := range s.nodes.Nodes {
					left = append(left, node.Keys()...)
				}
			}
			for _, keys := range redistest.Keys(s.t, s.servers) {
				left = append(left, keys...)
			}
			return len(left) == 0
		}) {
			s.Fatalf("left on the nodes: %q", left)
		}
	},
}

// A buffer can be read while a program still writes to it.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
