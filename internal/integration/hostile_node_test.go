package integration_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/resp"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/testbed/memredis"
	"github.com/quorumlock/redlock/internal/testbed/redisproc"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// A liar stands between clients and a node that is well. It passes on what both say, but to one command it answers
// something else.
type liar struct {
	listener net.Listener
	node     string // the address of the node
	all      sync.WaitGroup

	mu    sync.Mutex
	to    string // the command (commandOf); "": none
	says  lie
	asked map[string]int // how often each command was sent
	open  map[net.Conn]bool
}

// A lie is an answer: a text, and another one again and again, if there is one.
type lie struct{ text, more string }

func newLiar(t *testing.T, node string) *liar {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &liar{listener: listener, node: node, asked: make(map[string]int), open: make(map[net.Conn]bool)}
	l.all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			l.all.Go(func() { l.serve(conn) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		l.mu.Lock()
		for conn := range l.open {
			conn.Close()
		}
		l.open = nil
		l.mu.Unlock()
		l.all.Wait()
	})
	return l
}

func (l *liar) addr() string { return l.listener.Addr().String() }

// keep closes a connection at the end of the test.
func (l *liar) keep(conn net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		conn.Close()
		return false
	}
	l.open[conn] = true
	return true
}

func (l *liar) serve(client net.Conn) {
	defer client.Close()
	node, err := net.Dial("tcp", l.node)
	if err != nil {
		return
	}
	defer node.Close()
	if !l.keep(client) || !l.keep(node) {
		return
	}
	requests, replies := resp.NewBounded(client), resp.NewBounded(node) // one request or reply with each Read
	buf, subscribed := make([]byte, 1<<20), false
	for {
		n, err := requests.Read(buf)
		if err != nil {
			return
		}
		name := commandOf(buf[:n])
		l.mu.Lock()
		l.asked[name]++
		says, lies := l.says, l.to == name
		l.mu.Unlock()
		if lies {
			for _, err = io.WriteString(client, says.text); says.more != "" && err == nil; {
				_, err = io.WriteString(client, says.more)
			}
			if says == (lie{}) || err != nil {
				return // it closes the connection
			}
			continue
		}
		if _, err := node.Write(buf[:n]); err != nil {
			return
		}
		switch {
		case subscribed:
		case name == "SUBSCRIBE":
			subscribed = true
			l.all.Go(func() { _, _ = io.Copy(client, replies) })
		default:
			if n, err = replies.Read(buf); err == nil {
				_, err = client.Write(buf[:n])
			}
			if err != nil {
				return
			}
		}
	}
}

// commandOf names the command of a request; for scripts, also which.
func commandOf(request []byte) string {
	words := bytes.Split(request, []byte("\r\n"))
	name := strings.ToUpper(string(words[2]))
	if (name == "EVAL" || name == "EVALSHA") && len(words) > 4 {
		which, body := " acquire", string(bytes.Join(words[4:], []byte("\r\n")))
		for known, s := range map[string]string{
			" probe": script.Probe, " join": script.Join, " raise": script.Raise.Hash, " extend": script.Extend.Hash, " release": script.Release.Hash,
			" leave": script.Leave.Hash, " yield": script.Yield.Hash, " inspect": script.Inspect.Hash, " wake": script.Wake, " choose": script.Choose,
		} {
			if strings.HasPrefix(body, s) {
				which = known
			}
		}
		name += which
	}
	return name
}

// lies are what a node may say in the place of its answer. Those of noReplies are no replies, or too large, so the client
// has to tell that the node is at fault.
var (
	noReplies = map[string]lie{
		"a string without end":   {"$1000000000000\r\n", "x"},
		"a string of 8 EB":       {"$9223372036854775807\r\n", ""},
		"a string of -5 bytes":   {"$-5\r\n", ""},
		"a list of all numbers":  {"*9223372036854775807\r\n", ""},
		"a list without end":     {"*262000\r\n", strings.Repeat(":1000000\r\n", 1000)},
		"a pair of a long one":   {"*2\r\n$1\r\na\r\n$1000000000000\r\n", ""},
		"empty lists":            {"*262000\r\n", strings.Repeat("*0\r\n", 1000)},
		"lists within lists":     {"", strings.Repeat("*1\r\n", 1000)},
		"a line without end":     {"+", strings.Repeat("x", 1000)},
		"RESP3":                  {"%1\r\n+server\r\n+redis\r\n", ""},
		"a push":                 {">2\r\n+message\r\n+a\r\n", ""},
		"HTTP":                   {"HTTP/1.1 400 Bad Request\r\n\r\n", ""},
		"bytes":                  {"\x00\xff\x16\x03\x01\r\n", ""},
		"nothing, and it closes": {},
	}
	wrongOnes = map[string]lie{
		"zero":              {":0\r\n", ""},
		"the largest":       {":9223372036854775807\r\n", ""},
		"the smallest":      {":-9223372036854775808\r\n", ""},
		"an empty string":   {"$0\r\n\r\n", ""},
		"no string":         {"$-1\r\n", ""},
		"OK":                {"+OK\r\n", ""},
		"no number":         {"$3\r\nNaN\r\n", ""},
		"an empty list":     {"*0\r\n", ""},
		"no list":           {"*-1\r\n", ""},
		"a list of nothing": {"*4\r\n$-1\r\n*0\r\n:-1\r\n-ERR no\r\n", ""},
		"four numbers":      {"*4\r\n:1\r\n:1\r\n:1\r\n:1\r\n", ""},
		"an error":          {"-ERR no\r\n", ""},
		"NOSCRIPT":          {"-NOSCRIPT No matching script.\r\n", ""},
		"MOVED":             {"-MOVED 1 127.0.0.1:1\r\n", ""},
		"LOADING":           {"-LOADING Redis is loading the dataset in memory\r\n", ""},
		"three replies":     {"+OK\r\n:1\r\n*1\r\n$1\r\na\r\n", ""},
		"a long holder":     {"*3\r\n:1000\r\n$1000000\r\n" + strings.Repeat("x", 1000000) + "\r\n:1700000000000000\r\n", ""},
		"a long string":     {"$1000000\r\n" + strings.Repeat("x", 1000000) + "\r\n", ""},
	}
)

// mostOfAReply is what a reply may cost a client in memory: TestEndlessReplies in internal/resp.
const mostOfAReply = 96 << 20

// TestHostileNode: a node that answers anything to any command makes no client panic or take memory without bound. A
// majority of honest nodes goes on, and the node is named where what it says cannot be a reply.
func TestHostileNode(t *testing.T) {
	leaks.Check(t)
	cluster, err := memredis.Start(3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	hostile(t, []string{cluster.Nodes[0].Addr(), cluster.Nodes[1].Addr(), cluster.Nodes[2].Addr()}, need.Sized(41, 13, 1))
}

// TestHostileServer is TestHostileNode beside real servers, whose commands a client uses that the others do not have.
func TestHostileServer(t *testing.T) {
	leaks.Check(t)
	need.Servers(t, redisproc.Available)
	hostile(t, addrs(redistest.Servers(t, 3)), need.Sized(41, 31, 1))
}

// hostile tries one of so many lies to each command, at the last node.
func hostile(t *testing.T, nodes []string, every int) {
	l := newLiar(t, nodes[2])
	for _, node := range nodes {
		settled(t, node)
	}
	urls := []string{"redis://" + nodes[0], "redis://" + nodes[1], "redis://" + l.addr()}
	var begin, end runtime.MemStats
	runtime.ReadMemStats(&begin)
	if named := useAll(t, urls, l.addr(), func() bool { return true }); named != "" {
		t.Fatalf("an honest node is named: %s", named)
	}
	runtime.ReadMemStats(&end)
	honest := end.TotalAlloc - begin.TotalAlloc // of the client, and of nodes within the test
	l.mu.Lock()
	delete(l.asked, "EVALSHA leave") // it is sent only if an answer comes after the waiter has left
	commands := slices.Sorted(maps.Keys(l.asked))
	l.mu.Unlock()
	t.Logf("%d commands: %q", len(commands), commands)
	if len(commands) < 12 {
		t.Fatal("a client uses more")
	}
	at := 0
	for _, command := range commands {
		for i, lies := range []map[string]lie{noReplies, wrongOnes} {
			for _, what := range slices.Sorted(maps.Keys(lies)) {
				if at++; at%every != 0 {
					continue
				}
				t.Run(command+"/"+what, func(t *testing.T) {
					l.mu.Lock()
					l.to, l.says = command, lies[what]
					before := l.asked[command]
					l.mu.Unlock()
					var memory, after runtime.MemStats
					runtime.ReadMemStats(&memory)
					decides := command != "SUBSCRIBE" && command != "EVAL choose" // a call
					sent := func() bool {
						l.mu.Lock()
						defer l.mu.Unlock()
						return l.asked[command] > before
					}
					if command == "EVAL choose" {
						for _, node := range nodes {
							ask(t, &redisproc.Server{Addr: node}, "FLUSHALL")
							settled(t, node)
						}
					}
					named := useAll(t, urls, l.addr(), func() bool { return command != "SUBSCRIBE" || sent() })
					if i == 0 && named == "" && decides { // the others had decided: without them it matters what this one says
						named = useAlone(t, "redis://"+l.addr())
					}
					runtime.ReadMemStats(&after)
					if !sent() {
						t.Error("the command was not sent")
					}
					l.mu.Lock()
					defer l.mu.Unlock()
					l.to = ""
					if took, most := after.TotalAlloc-memory.TotalAlloc, uint64(l.asked[command]-before+1)*mostOfAReply+10*honest; took > most {
						t.Errorf("%d MB for %d answers, more than %d", took>>20, l.asked[command]-before, most>>20)
					}
					if i == 0 && decides && !strings.Contains(named, l.addr()) {
						t.Error("the node is not named")
					}
				})
			}
		}
	}
}

// settled makes a node vote at once.
func settled(t *testing.T, node string) {
	t.Helper()
	redistest.Settle(t, []*redisproc.Server{{Addr: node}})
}

// useAll uses each verb of a client once, which must succeed by the votes of two nodes, and returns what was said of
// the third one: "" if nothing was. A waiter waits until ready says so.
func useAll(t *testing.T, urls []string, third string, ready func() bool) (named string) {
	t.Helper()
	var mu sync.Mutex
	says := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if named = cmp.Or(mentions(t, err, third), named); err == nil {
			t.Error("nil")
		}
	}
	opts := &redlock.Options{TTL: 5 * time.Second, NodeTimeout: 300 * time.Millisecond, Hooks: &redlock.Hooks{
		Warning:  says,
		NodeDown: func(e *redlock.NodeError) { says(e) },
	}}
	lk, err := redlock.Connect(urls, opts)
	if err != nil { // the node was refused
		if !strings.Contains(err.Error(), third) {
			t.Errorf("Connect: %v", err)
		}
		return mentions(t, err, third)
	}
	defer lk.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := lk.WaitReady(ctx); err != nil {
		t.Errorf("WaitReady: %v", err)
	}
	held, err := lk.Acquire(ctx, "a")
	if err != nil {
		t.Fatalf("Acquire: %v", err)
	}
	got := make(chan error, 1)
	go func() {
		next, err := lk.Acquire(ctx, "a", redlock.Also("b"))
		if err == nil {
			err = next.Release(ctx)
		}
		got <- err
	}()
	eventually(t, 5*time.Second, "a waiter", func() bool {
		time.Sleep(20 * time.Millisecond) // each look takes most of a megabyte, in nodes within the test, and memory is measured here
		s, err := lk.Inspect(ctx, "a")
		if err != nil {
			t.Fatalf("Inspect: %v", err)
		}
		for _, n := range s.Nodes {
			if n.Node == third && n.Err != nil {
				says(fmt.Errorf("%s: %w", n.Node, n.Err))
			}
		}
		return len(s.Waiting) == 1 && ready()
	})
	if err := held.Extend(ctx); err != nil {
		t.Errorf("Extend: %v", err)
	}
	if err := held.Release(ctx); err != nil {
		t.Errorf("Release: %v", err)
	}
	if err := <-got; err != nil {
		t.Errorf("the waiter: %v", err)
	}
	slot, err := lk.TryAcquire(ctx, "c", redlock.Slots(2))
	if err != nil {
		t.Fatalf("TryAcquire: %v", err)
	}
	if err := slot.Release(ctx); err != nil {
		t.Errorf("Release of a slot: %v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	return named
}

// useAlone uses a node without others, and returns an error that it comes to.
func useAlone(t *testing.T, url string) string {
	t.Helper()
	opts := trusting()
	opts.NodeTimeout = 300 * time.Millisecond
	lk, err := redlock.Connect([]string{url}, opts)
	if err != nil {
		return err.Error()
	}
	defer lk.Close()
	if s, err := lk.Inspect(t.Context(), "alone"); err != nil || s.Nodes[0].Err != nil {
		return fmt.Sprint(err, s.Nodes[0].Err)
	}
	for _, options := range [][]redlock.AcquireOption{nil, {redlock.Shared()}} {
		l, err := lk.TryAcquire(t.Context(), "alone", options...)
		if err != nil {
			return err.Error()
		}
		if err := cmp.Or(l.Extend(t.Context()), l.Release(t.Context())); err != nil {
			return err.Error()
		}
	}
	return ""
}

// mentions returns the text of an error if it names a node, and checks that it does not quote more than a person reads.
func mentions(t *testing.T, err error, node string) string {
	t.Helper()
	text := fmt.Sprint(err)
	if len(text) > 5000 {
		t.Errorf("an error of %d bytes: %.300s", len(text), text)
	}
	if !strings.Contains(text, node) {
		return ""
	}
	return text
}
