package chaos

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/internal/faultproxy"
	"github.com/quorumlock/redlock/internal/redisproc"
)

// A machine measures what the processes of a run get of this computer. On a busy one all
// servers may be silent for longer than a client waits for them, and nothing in them, nor in
// the clients, shows why.
//
// Each server, and one that nobody uses, the bystander, is asked for its time every tick. A
// server that carries that out late was not run, or did something else; where the bystander
// is as late at the same time, it was the computer that did not run them. The bystander is
// asked by way of a proxy, too, one that breaks nothing: where that takes too long, there and
// back, it does so for all nodes, whose proxies are in the same process. Both are written
// down as Stalled, and are all that the judge goes by. What else there is to know is written
// down for people, as Measured: how long the kernel let processes wait (PSI, schedstat), what
// the hypervisor took (steal), and what the servers say of themselves (LATENCY, SLOWLOG).
type machine struct {
	bystander *redisproc.Server
	way       *faultproxy.Proxy // to it
	servers   []*redisproc.Server

	rec    *recorder
	stop   context.CancelFunc
	asking sync.WaitGroup
	gauges []*gauge // of the servers, of the bystander, and of the way to it
}

const (
	tick   = 10 * time.Millisecond
	worth  = 40 * time.Millisecond // what takes less is Lag's, or an attempt's
	window = 100 * time.Millisecond
)

// watchArgs have a server remember what took it long.
var watchArgs = []string{"--latency-monitor-threshold", "20", "--slowlog-log-slower-than", "20000"}

func newMachine(nodes []*realNode) (m *machine, err error) {
	m = new(machine)
	for _, n := range nodes {
		m.servers = append(m.servers, n.server)
	}
	if m.bystander, err = redisproc.Start(""); err != nil {
		return m, err
	}
	m.way, err = faultproxy.Listen(m.bystander.Addr)
	return m, err
}

// begin measures until end.
func (m *machine) begin(rec *recorder) {
	var ctx context.Context
	ctx, m.stop = context.WithCancel(context.Background())
	m.rec = rec
	for _, s := range append(slices.Clone(m.servers), m.bystander) {
		m.gauges = append(m.gauges, &gauge{addr: s.Addr, start: rec.start})
	}
	m.gauges = append(m.gauges, &gauge{addr: m.way.Addr(), whole: true, start: rec.start})
	for _, g := range m.gauges {
		m.asking.Go(func() { g.run(ctx) })
	}
	m.asking.Go(func() { m.look(ctx) })
}

// end writes down what was measured, and stops the bystander. It may be called twice.
func (m *machine) end() {
	if m.stop != nil {
		m.stop()
		m.asking.Wait()
		m.stop = nil
		n := len(m.servers)
		bystander, way := m.gauges[n], m.gauges[n+1]
		for node, g := range m.gauges[:n] {
			for _, s := range way.late {
				m.rec.add(Event{At: s.from, Kind: Stalled, Value: node, Until: s.to, Error: fmt.Sprintf(
					"a bystander was answered after %v, there and back", (s.to - s.from).Round(time.Millisecond))})
			}
			for _, s := range common(g.late, bystander.late) {
				if s.to-s.from >= worth {
					m.rec.add(Event{At: s.from, Kind: Stalled, Value: node, Until: s.to, Error: fmt.Sprintf(
						"it and a bystander did nothing for %v", (s.to - s.from).Round(time.Millisecond))})
				}
			}
			if said := confess(g.addr); said != "" {
				m.rec.note(Event{Kind: Measured, Error: fmt.Sprintf("node %d: %s", node, said)})
			}
		}
	}
	if m.way != nil {
		m.way.Close()
		m.way = nil
	}
	if m.bystander != nil {
		m.bystander.Stop()
		m.bystander = nil
	}
}

// common is what two lists of times have in common.
func common(a, b []stretch) (all []stretch) {
	for _, s := range a {
		for _, t := range b {
			if from, to := max(s.from, t.from), min(s.to, t.to); from < to {
				all = append(all, stretch{from, to})
			}
		}
	}
	return all
}

// A gauge asks one server again and again.
type gauge struct {
	addr  string
	whole bool // the way back counts
	start time.Time
	late  []stretch // from when it was asked to when it carried that out, or to when that was known
}

func (g *gauge) run(ctx context.Context) {
	var conn net.Conn
	for ctx.Err() == nil {
		var err error
		if conn == nil {
			conn, err = net.DialTimeout("tcp", g.addr, time.Second)
		}
		if err == nil {
			err = g.ask(ctx, conn)
		}
		if err != nil && conn != nil { // nobody is late who is down, or refuses
			_ = conn.Close()
			conn = nil
		}
		wait(ctx, tick)
	}
	if conn != nil {
		_ = conn.Close()
	}
}

// ask asks for the time. When the server has said it is what counts: the reply may have had
// to wait for us.
func (g *gauge) ask(ctx context.Context, conn net.Conn) error {
	sent := time.Now()
	done := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer done()
	if _, err := conn.Write([]byte("TIME\r\n")); err != nil {
		return err
	}
	reply := bufio.NewReader(conn)
	var numbers []int64
	for len(numbers) < 2 {
		line, err := reply.ReadString('\n')
		if err != nil {
			return err
		}
		switch line = strings.TrimSpace(line); {
		case strings.HasPrefix(line, "-"):
			return errors.New(line)
		case line == "" || line[0] == '*' || line[0] == '$':
		default:
			n, err := strconv.ParseInt(line, 10, 64)
			if err != nil {
				return err
			}
			numbers = append(numbers, n)
		}
	}
	took := time.Unix(numbers[0], numbers[1]*1000).Sub(sent)
	if g.whole {
		took = time.Since(sent)
	}
	if took >= worth {
		from := sent.Sub(g.start)
		g.late = append(g.late, stretch{from, from + took})
	}
	return nil
}

// look writes down what the kernel says when it says that somebody had to wait.
func (m *machine) look(ctx context.Context) {
	if _, err := os.Stat("/proc/pressure"); err != nil {
		m.rec.note(Event{Kind: Measured, Error: "this kernel has no PSI"})
	}
	last := m.sample()
	for ctx.Err() == nil {
		wait(ctx, window)
		now := m.sample()
		if text := now.since(last); text != "" {
			m.rec.note(Event{Kind: Measured, Error: text})
		}
		last = now
	}
}

// A sample is what the kernel has counted up to now.
type sample struct {
	at       time.Time
	pressure [3]time.Duration // for which somebody waited for a processor, the disk, memory
	steal    time.Duration
	servers  []time.Duration // for which they waited for a processor
}

var pressures = [3]string{"cpu", "io", "memory"}

func (m *machine) sample() sample {
	s := sample{at: time.Now()}
	for i, name := range pressures {
		s.pressure[i] = time.Duration(fieldAfter("/proc/pressure/"+name, "total=")) * time.Microsecond
	}
	const perTick = 10 * time.Millisecond // USER_HZ is 100
	if stat, err := os.ReadFile("/proc/stat"); err == nil {
		if fields := strings.Fields(string(stat)); len(fields) > 8 {
			n, _ := strconv.ParseInt(fields[8], 10, 64)
			s.steal = time.Duration(n) * perTick
		}
	}
	for _, server := range m.servers {
		waited := int64(0)
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", server.Pid())); err == nil {
			if fields := strings.Fields(string(stat)); len(fields) > 1 {
				waited, _ = strconv.ParseInt(fields[1], 10, 64)
			}
		}
		s.servers = append(s.servers, time.Duration(waited))
	}
	return s
}

// fieldAfter is the first number after some text in a file; 0: there is none.
func fieldAfter(file, mark string) int64 {
	text, _ := os.ReadFile(file)
	_, after, _ := strings.Cut(string(text), mark)
	number, _, _ := strings.Cut(after, "\n")
	n, _ := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	return n
}

// since puts in words what is worth it.
func (s sample) since(last sample) string {
	took := s.at.Sub(last.at)
	waited := make([]string, len(s.servers))
	longest := time.Duration(0)
	for i, w := range s.servers {
		d := max(0, w-last.servers[i])
		longest = max(longest, d)
		waited[i] = fmt.Sprint(d.Milliseconds())
	}
	notable := longest >= worth/2 || s.steal > last.steal || took > window+worth
	text := fmt.Sprintf("in %d ms: steal %d", took.Milliseconds(), (s.steal - last.steal).Milliseconds())
	for i, name := range pressures {
		d := s.pressure[i] - last.pressure[i]
		notable = notable || i > 0 && d >= worth/2
		text += fmt.Sprintf(", %s pressure %d", name, d.Milliseconds())
	}
	if !notable {
		return ""
	}
	return text + "; servers waited for a processor for " + strings.Join(waited, ", ") + " ms"
}

// confess is what a server remembers of itself that took long; "": nothing, or it does not
// say.
func confess(addr string) string {
	client := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2, DisableIdentity: true, MaxRetries: -1, DialTimeout: time.Second, ReadTimeout: time.Second})
	defer client.Close()
	ctx := context.Background()
	var said []string
	if latest, err := client.Do(ctx, "LATENCY", "LATEST").Slice(); err == nil {
		for _, event := range latest {
			if e, ok := event.([]any); ok && len(e) > 3 {
				said = append(said, fmt.Sprintf("LATENCY %v: the last %v ms, the longest %v ms", e[0], e[2], e[3]))
			}
		}
	}
	if slow, err := client.SlowLogGet(ctx, 5).Result(); err == nil {
		for _, s := range slow {
			said = append(said, fmt.Sprintf("SLOWLOG %v: %.60s", s.Duration, strings.Join(s.Args, " ")))
		}
	}
	// A server that has many more connections than clients has had to make them again and again.
	if info, err := client.InfoMap(ctx, "stats").Result(); err == nil && len(said) > 0 {
		said = append(said, "connections in all: "+info["Stats"]["total_connections_received"])
	}
	return strings.Join(said, "; ")
}
