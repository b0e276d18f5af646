package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/internal/facts"
)

// counters are the servers' own counters, summed over the fleet.
type counters struct {
	cpu      float64 // seconds, user and system
	commands float64 // everything executed, including commands in scripts
	scripts  float64 // EVAL and EVALSHA
	reads    float64 // reads from sockets: requests that arrive together share one
}

func (c counters) minus(d counters) counters {
	return counters{c.cpu - d.cpu, c.commands - d.commands, c.scripts - d.scripts, c.reads - d.reads}
}

// counters asks every server once.
func (f *fleet) counters(ctx context.Context) (counters, error) {
	var sum counters
	for i, w := range f.watch {
		info, err := readInfo(ctx, w)
		if err != nil {
			return counters{}, fmt.Errorf("counters of node %d: %w", i+1, err)
		}
		sum.cpu += info.cpu()
		sum.commands += info.number("total_commands_processed")
		sum.reads += info.number("total_reads_processed")
		sum.scripts += info.calls("eval") + info.calls("evalsha")
	}
	return sum, nil
}

// sent counts the executions of each command that clients send when they lock and wait (scripts
// execute SET, too), and the servers' CPU, in seconds.
func (f *fleet) sent(ctx context.Context) (map[string]float64, error) {
	sum := map[string]float64{}
	for i, w := range f.watch {
		info, err := readInfo(ctx, w)
		if err != nil {
			return nil, fmt.Errorf("counters of node %d: %w", i+1, err)
		}
		for _, command := range []string{"eval", "evalsha", "set", "subscribe"} {
			sum[command] += info.calls(command)
		}
		sum["cpu"] += info.cpu()
	}
	return sum, nil
}

// serverInfo has a server's counters.
type serverInfo facts.Facts

func readInfo(ctx context.Context, client *redis.Client) (serverInfo, error) {
	// Servers before 7 accept only one section at a time.
	text, err := client.Info(ctx, "all").Result()
	if err != nil {
		return nil, err
	}
	info := make(facts.Facts)
	info.Add(text)
	return serverInfo(info), nil
}

// number returns 0 for a field that this server does not have.
func (i serverInfo) number(field string) float64 {
	v, _ := strconv.ParseFloat(i[field], 64)
	return v
}

// cpu is the processor time that the server has used, user and system, in seconds.
func (i serverInfo) cpu() float64 { return i.number("used_cpu_user") + i.number("used_cpu_sys") }

// calls is how often a command was executed, by scripts too.
func (i serverInfo) calls(command string) float64 { return i.stat(command, "calls") }

// usec is the time that this took, in microseconds.
func (i serverInfo) usec(command string) float64 { return i.stat(command, "usec") }

// stat reads a line like cmdstat_get:calls=21,usec=175,….
func (i serverInfo) stat(command, figure string) float64 {
	for part := range strings.SplitSeq(i["cmdstat_"+command], ",") {
		if value, ok := strings.CutPrefix(part, figure+"="); ok {
			v, _ := strconv.ParseFloat(value, 64)
			return v
		}
	}
	return 0
}
