package realarena

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/chaos/internal/client"
	"github.com/quorumlock/redlock/chaos/internal/scenario"
)

// ClientVariable is the environment variable with the briefing of a client process.
const ClientVariable = "REDLOCK_CHAOS_CLIENT"

// ClientMain must be called first in main, or TestMain, of a program that runs plans in this arena.
// The clients are processes of their own, and each of them is this program again. In such a process
// ClientMain runs the client and does not return; in any other it returns at once.
func ClientMain() {
	text, ok := os.LookupEnv(ClientVariable)
	if !ok {
		return
	}
	redis.SetLogger(quiet{}) // nodes that are down are no news here
	if err := live(text, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// A briefing has everything that a client process needs before it begins.
type briefing struct {
	Number   int
	Nodes    []string // addresses
	Resource string   // the address of a shop
	Plan     *scenario.Plan
	Scenario sketch
	Options  settled
}

// A sketch is a scenario without its function, which has no JSON, and is not needed any more when
// there is a plan.
type sketch struct {
	*scenario.Scenario
	Quorum *struct{} `json:",omitempty"` // in the place of the function
}

// A settled is the same for options: without the hooks, which do not reach another process, and the
// clock, which is the client's own.
type settled struct {
	redlock.Options
	Hooks, Clock *struct{} `json:",omitempty"`
}

func (b briefing) marshal() (string, error) {
	b.Scenario.Scenario, b.Options.Options = b.Plan.Scenario, b.Plan.Options
	text, err := json.Marshal(b)
	return string(text), err
}

// live runs a client in a process of its own: it carries out orders until there are no more.
func live(text string, orders io.Reader, out io.Writer) error {
	var b briefing
	if err := json.Unmarshal([]byte(text), &b); err != nil {
		return err
	}
	b.Plan.Scenario, b.Plan.Options = b.Scenario.Scenario, b.Options.Options
	store, err := newCustomer(b.Resource)
	if err != nil {
		return err
	}
	runtime.GOMAXPROCS(1) // for watch: otherwise one thread could be starved while another is not
	r := &reporter{out: json.NewEncoder(out)}
	process := &ownProcess{name: client.ProcessName(b.Number), addrs: b.Nodes}
	c := &client.Client{Number: b.Number, Plan: b.Plan, Process: process, Store: store, Leftovers: r, Tell: r.note}
	before := runtime.NumGoroutine()
	var stopWatch func()
	r.say(report{Done: wordReady})
	for words := bufio.NewScanner(orders); words.Scan(); {
		word, argument, _ := strings.Cut(words.Text(), " ")
		switch word {
		case wordBegin:
			began, role, _ := strings.Cut(argument, " ")
			nanos, err := strconv.ParseInt(began, 10, 64)
			if err != nil {
				return err
			}
			if err := json.Unmarshal([]byte(role), &c.Role); err != nil {
				return err
			}
			c.Start = sameInstant(nanos)
			r.start = c.Start
			stopWatch = watch(r, b.Number)
			if err := c.Enter(context.Background()); err != nil {
				return err
			}
		case wordRest:
			c.Rest()
		case wordLast:
			c.Last()
		case wordWeigh:
			c.Weigh()
		default:
			return fmt.Errorf("the order %q has no meaning", word)
		}
		r.say(report{Done: word})
	}
	if stopWatch == nil {
		return nil // the client was never needed
	}
	c.Leave()
	process.close()
	stopWatch()
	return noneLeft(before)
}

// watch records when the process gets no processor: starvation on a busy machine holds it up as a
// signal does. Less than worth is covered by Lag. The process runs one goroutine at a time (see
// live), so whatever holds up another one holds up this one, too.
func watch(r *reporter, number int) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() {
		for last := time.Since(r.start); ctx.Err() == nil; {
			client.Wait(ctx, tick)
			now := time.Since(r.start)
			if now-last > worth {
				r.say(report{Event: &history.Event{At: last, Kind: history.Held, Client: number, Until: now}})
			}
			last = now
		}
	})
	return func() { cancel(); watching.Wait() }
}

// sameInstant returns an instant of the wall clock with a reading of the monotonic one, by which
// all later ones are measured: from here on setting the clock has no effect on the times of this
// process and of the one that drives the run.
func sameInstant(nanos int64) time.Time {
	now := time.Now()
	return now.Add(-time.Duration(now.UnixNano() - nanos))
}

// noneLeft waits until there are no more goroutines than before, and returns an error if some are left.
func noneLeft(before int) error {
	for deadline := time.Now().Add(2 * time.Second); runtime.NumGoroutine() > before; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			stacks := make([]byte, tailSize)
			stacks = stacks[:runtime.Stack(stacks, true)]
			return fmt.Errorf("closed, and %d goroutines are still there:\n%s", runtime.NumGoroutine()-before, stacks)
		}
	}
	return nil
}

// A reporter writes each report at once: a report in a buffer would be lost if the process is killed.
type reporter struct {
	start time.Time

	mu  sync.Mutex
	out *json.Encoder
}

func (r *reporter) say(what report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.out.Encode(what); err != nil {
		os.Exit(1) // the driver process is gone: the run is over
	}
}

func (r *reporter) note(e history.Event) {
	e.At = time.Since(r.start) // before it waits for other reports
	r.say(report{Event: &e})
}

func (r *reporter) Add(token string) { r.say(report{Leftover: []byte(token)}) }
