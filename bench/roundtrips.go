package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/bench/contender"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/redis/go-redis/v9"
)

// A fence takes a second round trip (raise) when too few nodes came to the same number in the
// first. Only the nodes can tell how often that is: roundtrips makes all of them list what they
// execute (MONITOR), and looks for the tokens in it.

// A situation is what happens between two acquisitions of a name. The second one is measured.
type situation struct {
	name          string
	first, second contender.Ahead // the clocks of the two lockers
	empty         bool            // one node loses its data in between
	byScript      bool            // both use no plain commands
}

// The clocks of two clients may be half a second apart before a node no longer
// accepts the time of one of them.
const (
	apart  = contender.Ahead(400 * time.Millisecond)
	behind = contender.Ahead(-2 * time.Second)
)

var situations = []situation{
	{name: "nothing happens"},
	{name: "one node emptied", empty: true},
	{name: "the earlier lock was of a client 400 ms ahead", first: apart},
	{name: "the same, and one node emptied", first: apart, empty: true},
	{name: "the clients are 2 s behind the nodes", first: behind, second: behind},
}

func (e *env) roundtrips(ctx context.Context) (*table, error) {
	s := &series{rounds: map[string][]sample{}}
	for round := range e.rounds {
		for _, what := range situations {
			fmt.Fprintf(os.Stderr, "fence, round trips: round %d of %d: %s\n", round+1, e.rounds, what.name)
			if round == 0 {
				s.contenders = append(s.contenders, contender.Contender{Name: what.name})
			}
			got, err := e.count(ctx, what)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", what.name, err)
			}
			s.rounds[what.name] = append(s.rounds[what.name], got)
		}
	}
	return &table{
		title: "fence, round trips",
		text: "How many acquisitions of redlock had their fence stored with their grants, in one round trip, and how many had to raise it in a second one: " +
			"from what the nodes say they have executed (MONITOR). One caller locks each name twice; the second time counts.",
		head: "between the two",
		columns: []column{
			total("acquisitions", "acquisitions", count),
			total("with a second round trip", "raised", count),
			median("in one round trip", "share", percent),
			total("failed", "failed", count),
		},
		series: s,
		notes: []string{
			"Emptied: FLUSHALL, and the node's quarantine is over at once.",
			"A client that is ahead has its numbers from the future; until that has come, as here, later locks count on from there, " +
				"and nodes that were not there for the last one come to other numbers.",
			"Beyond half a second nodes take their own time instead of the client's, each its own, so all acquisitions have to raise.",
		},
	}, nil
}

// namesAtOnce is the number of names that are locked before the situation, and again after it: few,
// since the effect of a clock that was ahead lasts only for a moment.
const namesAtOnce = 50

func (e *env) count(ctx context.Context, what situation) (got sample, err error) {
	var lockers [2]*redlock.Locker
	for i, clock := range []contender.Ahead{what.first, what.second} {
		clients := make([]*redis.Client, nodes)
		for n, addr := range e.fleet.addrs() {
			clients[n] = redis.NewClient(&redis.Options{Addr: addr})
			defer clients[n].Close()
		}
		opts := &redlock.Options{TTL: e.ttl, Clock: clock}
		if what.byScript {
			opts.MaxNodeSkew = -1
		}
		l, err := redlock.New(clients, opts)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, l.Close()) }()
		lockers[i] = l
	}
	for _, w := range e.fleet.watch { // names of the situation before may share a bucket with the new ones
		if err := w.Del(ctx, script.Fences, script.Belows).Err(); err != nil {
			return nil, err
		}
	}
	heard, err := listen(ctx, e.fleet)
	if err != nil {
		return nil, err
	}
	defer heard.stop()
	var ours []string // the tokens of the second locker
	failed := 0
	prefix := freshPrefix()
	for n := 0; n < e.counted; n += namesAtOnce {
		names := make([]string, namesAtOnce)
		for i := range names {
			names[i] = prefix + strconv.Itoa(n+i) + nameEnd
		}
		if _, f := lockAll(ctx, lockers[0], names); f > 0 {
			failed += f
		}
		if what.empty {
			if err := empty(ctx, e.fleet.watch[nodes-1]); err != nil {
				return nil, err
			}
		}
		tokens, f := lockAll(ctx, lockers[1], names)
		ours, failed = append(ours, tokens...), failed+f
	}
	raises, err := heard.raises(ctx, e.fleet)
	if err != nil {
		return nil, err
	}
	raised := 0
	for _, token := range ours {
		if raises[token] {
			raised++
		}
	}
	return sample{
		"acquisitions": float64(len(ours)), "raised": float64(raised), "failed": float64(failed),
		"share": 1 - float64(raised)/float64(max(1, len(ours))),
	}, ctx.Err()
}

// lockAll locks and unlocks each name once.
func lockAll(ctx context.Context, l *redlock.Locker, names []string) (tokens []string, failed int) {
	for _, name := range names {
		lock, err := l.TryAcquire(ctx, name)
		if err == nil {
			tokens = append(tokens, lock.Token())
			err = lock.Release(ctx)
		}
		if err != nil {
			failed++
		}
	}
	return tokens, failed
}

// A listener records the raises that the nodes execute.
type listener struct {
	conns   []net.Conn
	running sync.WaitGroup

	mu     sync.Mutex
	raised map[string]bool // tokens
	ends   int             // nodes that have executed the last command
	err    error
	ended  chan struct{} // closed when all have, or one has failed
	over   bool
}

const lastWord = "bench:that-is-all"

func listen(ctx context.Context, f *fleet) (*listener, error) {
	l := &listener{raised: map[string]bool{}, ended: make(chan struct{})}
	for _, addr := range f.addrs() {
		conn, lines, err := monitor(ctx, addr)
		if err != nil {
			l.stop()
			return nil, err
		}
		l.conns = append(l.conns, conn)
		l.running.Go(func() { l.follow(lines) })
	}
	return l, nil
}

// monitor has a node list what it executes, a command a line.
func monitor(ctx context.Context, addr string) (net.Conn, *bufio.Scanner, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, nil, err
	}
	lines := bufio.NewScanner(conn)
	_, err = io.WriteString(conn, "MONITOR\r\n")
	if err == nil && !lines.Scan() {
		err = errors.Join(io.ErrUnexpectedEOF, lines.Err())
	}
	if err == nil && lines.Text() != "+OK" {
		err = fmt.Errorf("MONITOR: %s", lines.Text())
	}
	if err != nil {
		_ = conn.Close()
		return nil, nil, err
	}
	return conn, lines, nil
}

// follow reads lines like
//
//	+1763755200.123456 [0 127.0.0.1:40000] "evalsha" "<hash>" "1" "<key>" "<token>" "<number>" "<modes>" "<bucket>"
//
// in which no argument of the library has a space.
func (l *listener) follow(lines *bufio.Scanner) {
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		for i, w := range words {
			words[i] = strings.Trim(w, `"`)
		}
		switch {
		case len(words) == 11 && words[3] == "evalsha" && words[4] == script.Raise.Hash:
			l.mu.Lock()
			l.raised[words[7]] = true
			l.mu.Unlock()
		case len(words) == 5 && words[4] == lastWord:
			l.end(nil)
		}
	}
	l.end(errors.Join(io.ErrUnexpectedEOF, lines.Err()))
}

func (l *listener) end(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return
	}
	if l.ends++; err != nil || l.ends == nodes {
		l.over, l.err = true, err
		close(l.ended)
	}
}

// raises returns the tokens for which a number was raised so far.
func (l *listener) raises(ctx context.Context, f *fleet) (map[string]bool, error) {
	if err := f.quiet(ctx); err != nil {
		return nil, err
	}
	for _, w := range f.watch {
		if err := w.Echo(ctx, lastWord).Err(); err != nil {
			return nil, err
		}
	}
	select {
	case <-l.ended:
		l.mu.Lock()
		defer l.mu.Unlock()
		return maps.Clone(l.raised), l.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (l *listener) stop() {
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.running.Wait()
}
