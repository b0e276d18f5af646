//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/internal/faultproxy"
	"github.com/quorumlock/redlock/internal/memredis"
	"github.com/quorumlock/redlock/internal/redistest"
)

// eventually polls a condition that becomes true by itself.
func eventually(cond func() bool) error {
	if !within(patience, cond) {
		return fmt.Errorf("not within %v", patience)
	}
	return nil
}

// addrs are the nodes'.
func (s *script) addrs() (addrs []string) {
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

// name tells the script of its nodes.
func (s *script) name() {
	var urls []string
	for i, addr := range s.addrs() {
		s.env[fmt.Sprint("NODE", i)] = addr
		_, s.env[fmt.Sprint("PORT", i)], _ = net.SplitHostPort(addr)
		urls = append(urls, "redis://"+addr)
	}
	s.env["NODES"] = strings.Join(urls, ",")
}

// ask has a node carry out a command.
func ask(addr string, command []string) (reply any, err error) {
	words := make([]any, len(command))
	for i, word := range command {
		words[i] = word
	}
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()
	return rdb.Do(context.Background(), words...).Result()
}

type step func(s *script, wanted bool, args []string) error

var steps map[string]step

func init() {
	steps = map[string]step{
		"exec": func(s *script, wanted bool, args []string) error {
			p, err := s.start(args)
			if err != nil {
				return err
			}
			if err := s.wait(p); err != nil {
				return err
			}
			if (p.err == nil) != wanted {
				return fmt.Errorf("ended with %v", p.cmd.ProcessState)
			}
			return nil
		},
		"start": func(s *script, _ bool, args []string) (err error) {
			s.programs[args[0]], err = s.start(args[1:])
			return err
		},
		"await": func(s *script, _ bool, args []string) error {
			p, pattern := s.programs[args[0]], regexp.MustCompile(args[1])
			s.last = p
			return eventually(func() bool {
				return pattern.MatchString(p.stdout.String()) || pattern.MatchString(p.stderr.String())
			})
		},
		"wait":   func(s *script, _ bool, args []string) error { return s.wait(s.programs[args[0]]) },
		"stdout": match(func(p *program) *buffer { return &p.stdout }),
		"stderr": match(func(p *program) *buffer { return &p.stderr }),
		"status": func(s *script, _ bool, args []string) error {
			if got := strconv.Itoa(s.last.cmd.ProcessState.ExitCode()); got != args[0] {
				return fmt.Errorf("status is %s", got)
			}
			return nil
		},

		// signal NAME SIGNAL
		"signal": func(s *script, _ bool, args []string) error {
			return s.programs[args[0]].cmd.Process.Signal(map[string]os.Signal{
				"HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "QUIT": syscall.SIGQUIT,
				"TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL, "STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT, "USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2,
			}[args[1]])
		},
		// capture NAME PATTERN sets $NAME to the pattern's group in the last stdout.
		"capture": func(s *script, _ bool, args []string) error {
			m := regexp.MustCompile(args[1]).FindStringSubmatch(s.last.stdout.String())
			if m == nil {
				return fmt.Errorf("no match")
			}
			s.env[args[0]] = m[1]
			return nil
		},
		// gone PID: it does not run, whether its parent has noticed or not.
		"gone": func(s *script, _ bool, args []string) error {
			pid, err := strconv.Atoi(args[0])
			if err != nil {
				return err
			}
			return eventually(func() bool {
				stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
				return syscall.Kill(pid, 0) == syscall.ESRCH || bytes.Contains(stat, []byte(") Z "))
			})
		},
		"env": func(s *script, _ bool, args []string) error {
			name, value, _ := strings.Cut(args[0], "=")
			s.env[name] = value
			return nil
		},
		// stdin TEXT, for the next program
		"stdin": func(s *script, _ bool, args []string) error {
			s.stdin = args[0]
			return nil
		},
		// long: not with -short
		"long": func(s *script, _ bool, _ []string) error {
			if testing.Short() {
				s.t.Skip("takes some seconds")
			}
			return nil
		},

		// nodes N starts nodes: $NODES, and $NODE0, $NODE1 ... their host:port.
		"nodes": func(s *script, _ bool, args []string) error {
			n, err := strconv.Atoi(args[0])
			if err != nil {
				return err
			}
			if s.nodes, err = memredis.Start(n); err != nil {
				return err
			}
			s.t.Cleanup(s.nodes.Close)
			s.name()
			return nil
		},
		// servers N is nodes N with new redis-servers.
		"servers": func(s *script, _ bool, args []string) error {
			n, err := strconv.Atoi(args[0])
			if err == nil {
				s.servers = redistest.NewServers(s.t, n)
				s.name()
			}
			return err
		},
		// clocks N is servers N that have votes, and whose clocks can be set.
		"clocks": func(s *script, _ bool, args []string) error {
			n, err := strconv.Atoi(args[0])
			if err == nil {
				s.servers = redistest.ClockServers(s.t, n)
				s.name()
			}
			return err
		},
		// clock I D sets a server's clock forward by so much.
		"clock": func(s *script, _ bool, args []string) error {
			i, err := strconv.Atoi(args[0])
			if err != nil {
				return err
			}
			d, err := time.ParseDuration(args[1])
			if err != nil {
				return err
			}
			return s.servers[i].StepClock(d)
		},
		// restart I restarts a node, an embedded one with its data, a server without.
		"restart": func(s *script, _ bool, args []string) error {
			i, err := strconv.Atoi(args[0])
			switch {
			case err != nil:
				return err
			case s.nodes != nil:
				return s.nodes.Nodes[i].Restart(true)
			}
			return s.servers[i].Restart()
		},
		// forget I ... has nodes lose all their data.
		"forget": func(s *script, _ bool, args []string) error {
			for _, arg := range args {
				if _, err := ask(s.env["NODE"+arg], []string{"FLUSHALL"}); err != nil {
					return err
				}
			}
			return nil
		},
		// mute: $MUTE is a node that takes connections and never answers.
		"mute": func(s *script, _ bool, _ []string) error {
			l, err := net.Listen("tcp", "127.0.0.1:0") // the kernel takes them
			if err != nil {
				return err
			}
			s.t.Cleanup(func() { l.Close() })
			s.env["MUTE"] = "redis://" + l.Addr().String()
			return nil
		},
		// down I ... kills nodes.
		"down": func(s *script, _ bool, args []string) error {
			for _, arg := range args {
				i, err := strconv.Atoi(arg)
				if err != nil {
					return err
				}
				s.nodes.Nodes[i].Kill()
			}
			return nil
		},
		// info I FIELD VALUE makes a node say so of itself.
		"info": func(s *script, _ bool, args []string) error {
			i, err := strconv.Atoi(args[0])
			if err == nil {
				s.nodes.Nodes[i].SetInfo(args[1], args[2])
			}
			return err
		},
		// redis COMMAND ... on every node; $REPLY is the last node's reply.
		"redis": func(s *script, _ bool, args []string) error {
			for _, addr := range s.addrs() {
				reply, err := ask(addr, args)
				if err != nil {
					return err
				}
				s.env["REPLY"] = fmt.Sprint(reply)
			}
			return nil
		},
		// at I COMMAND ... is redis, on one node.
		"at": func(s *script, _ bool, args []string) error {
			_, err := ask(s.env["NODE"+args[0]], args[1:])
			return err
		},
		// slow I D: $SLOW is a node, over a link on which each byte takes so long.
		"slow": func(s *script, _ bool, args []string) error {
			d, err := time.ParseDuration(args[1])
			if err != nil {
				return err
			}
			proxy, err := faultproxy.Listen(s.env["NODE"+args[0]])
			if err != nil {
				return err
			}
			s.t.Cleanup(proxy.Close)
			proxy.SetDelay(d)
			s.env["SLOW"] = "redis://" + proxy.Addr()
			return nil
		},
		// renewed KEY N: until the first node's TTL of the key has gone up N times.
		"renewed": func(s *script, _ bool, args []string) error {
			times, err := strconv.Atoi(args[1])
			if err != nil {
				return err
			}
			rdb := redis.NewClient(&redis.Options{Addr: s.addrs()[0]})
			defer rdb.Close()
			var before time.Duration
			return eventually(func() bool {
				ttl := rdb.PTTL(context.Background(), args[0]).Val()
				if ttl > before && before > 0 {
					times--
				}
				before = ttl
				return times == 0
			})
		},
		// free: no node has any key of a lock, sooner than the default TTL could do it.
		"free": func(s *script, _ bool, _ []string) error {
			var left []string
			if !within(soon, func() bool {
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
				return fmt.Errorf("left on the nodes: %q", left)
			}
			return nil
		},
	}
}
