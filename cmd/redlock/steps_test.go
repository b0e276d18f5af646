//go:build unix

package main

import (
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

	"github.com/quorumlock/redlock/internal/embedded"
)

// eventually polls a condition that becomes true by itself.
func eventually(cond func() bool) error {
	if !within(patience, cond) {
		return fmt.Errorf("not within %v", patience)
	}
	return nil
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
				"TERM": syscall.SIGTERM, "USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2,
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
		// gone PID
		"gone": func(s *script, _ bool, args []string) error {
			pid, err := strconv.Atoi(args[0])
			if err != nil {
				return err
			}
			return eventually(func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH })
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
			if s.nodes, err = embedded.Start(n); err != nil {
				return err
			}
			s.t.Cleanup(s.nodes.Close)
			s.env["NODES"] = strings.Join(s.nodes.URLs(), ",")
			for i, node := range s.nodes.Nodes {
				s.env[fmt.Sprint("NODE", i)] = node.Addr()
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
			words := make([]any, len(args))
			for i, arg := range args {
				words[i] = arg
			}
			for _, node := range s.nodes.Nodes {
				rdb := redis.NewClient(&redis.Options{Addr: node.Addr()})
				reply, err := rdb.Do(context.Background(), words...).Result()
				rdb.Close()
				if err != nil {
					return err
				}
				s.env["REPLY"] = fmt.Sprint(reply)
			}
			return nil
		},
		// renewed KEY N: until the first node's TTL of the key has gone up N times.
		"renewed": func(s *script, _ bool, args []string) error {
			times, err := strconv.Atoi(args[1])
			if err != nil {
				return err
			}
			rdb := redis.NewClient(&redis.Options{Addr: s.nodes.Nodes[0].Addr()})
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
		// free: no node has any key, sooner than the default TTL could do it.
		"free": func(s *script, _ bool, _ []string) error {
			var left []string
			if !within(soon, func() bool {
				left = left[:0]
				for _, node := range s.nodes.Nodes {
					left = append(left, node.Keys()...)
				}
				return len(left) == 0
			}) {
				return fmt.Errorf("left on the nodes: %q", left)
			}
			return nil
		},
	}
}
