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

// ClientVariable has a briefing in the environment of a process that is a client.
const ClientVariable = "REDLOCK_CHAOS_CLIENT"

// ClientMain must be the first thing that main, or TestMain, of a program does that
// runs plans in this arena. The clients are processes of their own, and each of them is
// this program again. It returns at once unless this process is one; then it runs the
// client and does not return.
func ClientMain() {
	text, ok := os.LookupEnv(ClientVariable)
	if !ok {
		return
	}
	redis.SetLogger(quiet{}) // nodes that are down are nothing to report
	if err := live(text, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// A briefing is all that a client in a process of its own is told before it begins.
type briefing struct {
	Number   int
	Nodes    []string // addresses
	Resource string   // the address of a shop
	Plan     *scenario.Plan
	Scenario sketch
	Options  settled
}

// A sketch is a scenario as far as it can be written down: without its function,
// which has done its work when there is a plan.
type sketch struct {
	*scenario.Scenario
	Quorum *struct{} `json:",omitempty"` // in the place of the function
}

// A settled is the same for options: no hook gets into another process, and the
// clock is the client's own.
type settled struct {
	redlock.Options
	Hooks, Clock *struct{} `json:",omitempty"`
}

func (b briefing) marshal() (string, error) {
	b.Scenario.Scenario, b.Options.Options = b.Plan.Scenario, b.Plan.Options
	text, err := json.Marshal(b)
	return string(text), err
}

// live is the life of a client in a process of its own: it does what it is told,
// word by word, until there are no more.
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
	runtime.GOMAXPROCS(1) // for watch: or one thread could be starved, and another see nothing of it
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
			nanos, err := strconv.ParseInt(argument, 10, 64)
			if err != nil {
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
		return nil // it was never needed
	}
	c.Leave()
	process.close()
	stopWatch()
	return noneLeft(before)
}

// watch notes when the process gets no processor: to be starved on a busy machine is
// to be held up like by a signal. What takes less than worth is Lag's. The process
// runs one goroutine at a time (see live), so what holds up another holds this one
// up, too.
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

// sameInstant is an instant of the wall clock with a reading of the monotonic one,
// by which all later ones are measured: from here on a clock that is set cannot
// make a difference between this process and the one that drives the run.
func sameInstant(nanos int64) time.Time {
	now := time.Now()
	return now.Add(-time.Duration(now.UnixNano() - nanos))
}

// noneLeft waits until there are no more goroutines than before, and tells of them
// if there are.
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

// A reporter writes reports, and each at once: what is in a buffer when the process
// is killed was never said.
type reporter struct {
	start time.Time

	mu  sync.Mutex
	out *json.Encoder
}

func (r *reporter) say(what report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.out.Encode(what); err != nil {
		os.Exit(1) // the driver is gone: the run is over
	}
}

func (r *reporter) note(e history.Event) {
	e.At = time.Since(r.start) // now, and not when the others have written theirs
	r.say(report{Event: &e})
}

func (r *reporter) Add(token string) { r.say(report{Leftover: token}) }
