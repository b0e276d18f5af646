package realarena

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// A sample has the kernel's counters up to now.
type sample struct {
	at       time.Time
	pressure [3]time.Duration // for which some process waited for a processor, the disk, memory
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

// since describes the counters that have risen by more than worth.
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

// confess returns the server's record of slow commands; "": there is none, or it does not answer.
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
	// Many more connections than clients mean that they were made again and again.
	if info, err := client.InfoMap(ctx, "stats").Result(); err == nil && len(said) > 0 {
		said = append(said, "connections in all: "+info["Stats"]["total_connections_received"])
	}
	return strings.Join(said, "; ")
}
