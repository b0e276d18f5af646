package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/seam"
)

// clientVariable has a briefing in the environment of a process that is a client.
const clientVariable = "REDLOCK_CHAOS_CLIENT"

// ClientMain must be the first thing that main, or TestMain, of a program does that
// runs plans in the [Real] arena. The clients there are processes of their own, and
// each of them is this program again. It returns at once unless this process is
// one; then it lives a client's life and does not return.
func ClientMain() {
	text, ok := os.LookupEnv(clientVariable)
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
	Plan     *Plan
	Scenario sketch
	Options  settled
}

// A sketch is a scenario as far as it can be written down: without its function,
// which has done its work when there is a plan.
type sketch struct {
	*Scenario
	Quorum *struct{} `json:",omitempty"` // in the place of the function
}

// A settled is the same for options: no hook gets into another process, and the
// clock is the client's own.
type settled struct {
	redlock.Options
	Hooks, Clock *struct{} `json:",omitempty"`
}

func (b briefing) marshal() (string, error) {
	b.Scenario.Scenario, b.Options.Options = b.Plan.scenario, b.Plan.options
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
	b.Plan.scenario, b.Plan.options = b.Scenario.Scenario, b.Options.Options
	store, err := newCustomer(b.Resource)
	if err != nil {
		return err
	}
	runtime.GOMAXPROCS(1) // for watch: or one thread could be starved, and another see nothing of it
	r := &reporter{out: json.NewEncoder(out)}
	process := &ownProcess{name: processName(b.Number), addrs: b.Nodes}
	c := &client{number: b.Number, plan: b.Plan, process: process, store: store, lots: r, tell: r.note}
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
			c.start = sameInstant(nanos)
			r.start = c.start
			stopWatch = watch(r, b.Number)
			if err := c.enter(context.Background()); err != nil {
				return err
			}
		case wordRest:
			c.rest()
		case wordLast:
			c.last()
		case wordWeigh:
			c.weigh()
		default:
			return fmt.Errorf("the order %q has no meaning", word)
		}
		r.say(report{Done: word})
	}
	if stopWatch == nil {
		return nil // it was never needed
	}
	c.leave()
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
			wait(ctx, tick)
			now := time.Since(r.start)
			if now-last > worth {
				r.say(report{Event: &Event{At: last, Kind: Held, Client: number, Until: now}})
			}
			last = now
		}
	})
	return func() { cancel(); watching.Wait() }
}

// sameInstant is an instant of the wall clock with a reading of the monotonic one,
// by which all later ones are measured: from here on nobody who sets the clock can
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
		os.Exit(1) // nobody listens: the run is over
	}
}

func (r *reporter) note(e Event) {
	e.At = time.Since(r.start) // now, and not when the others have written theirs
	r.say(report{Event: &e})
}

func (r *reporter) add(token string) { r.say(report{Lot: token}) }

// An ownProcess is this one. What happens to it comes from outside.
type ownProcess struct {
	seam.Chance // but for the token
	name        string
	addrs       []string
	asking      sync.Mutex
	tokens      atomic.Int64
	scales      atomic.Pointer[func() []int] // of its Locker
	direct      []*redis.Client              // to look for tokens
	clients     []*redis.Client
}

func (p *ownProcess) Now() time.Time { return time.Now() }

// Token tells whose it is: what a process that was killed has left behind is no
// more than that.
func (p *ownProcess) Token() string { return fmt.Sprintf("%s.%d", p.name, p.tokens.Add(1)) }

func (p *ownProcess) locker(opts *redlock.Options) (*redlock.Locker, error) {
	opts.Clock = p
	urls := make([]string, len(p.addrs))
	for i, addr := range p.addrs {
		urls[i] = "redis://" + addr
	}
	return redlock.Connect(urls, opts)
}

// Weigh takes what says how many requests the lanes keep.
func (p *ownProcess) Weigh(lanes func() []int) { p.scales.Store(&lanes) }

func (p *ownProcess) lanes() []int {
	if lanes := p.scales.Load(); lanes != nil {
		return (*lanes)()
	}
	return nil
}

// holders asks all nodes at once, by way of their proxies.
func (p *ownProcess) holders(key, token string) (has, silent int) {
	p.asking.Lock()
	if p.direct == nil {
		for i := range p.addrs {
			p.direct = append(p.direct, p.stranger(i))
		}
	}
	p.asking.Unlock()
	answers := make([]error, len(p.addrs))
	var all sync.WaitGroup
	for i, c := range p.direct {
		all.Go(func() {
			found, err := c.Get(context.Background(), key).Result()
			if answers[i] = err; err == nil && found != token {
				answers[i] = redis.Nil
			}
		})
	}
	all.Wait()
	for _, err := range answers {
		switch {
		case err == nil:
			has++
		case !errors.Is(err, redis.Nil):
			silent++
		}
	}
	return has, silent
}

// stranger is a connection that has nothing to do with the Locker's.
func (p *ownProcess) stranger(node int) *redis.Client {
	const patience = 50 * time.Millisecond
	c := redis.NewClient(&redis.Options{
		Addr: p.addrs[node], Protocol: 2, DisableIdentity: true, MaxRetries: -1, DialerRetries: 1,
		DialTimeout: patience, ReadTimeout: patience, WriteTimeout: patience,
	})
	p.clients = append(p.clients, c)
	return c
}

func (p *ownProcess) plain() []plainNode {
	nodes := make([]plainNode, len(p.addrs))
	for i := range p.addrs {
		nodes[i] = plainReal{p.stranger(i)}
	}
	return nodes
}

func (p *ownProcess) close() {
	for _, c := range p.clients {
		_ = c.Close()
	}
}

func (p *ownProcess) pass(int, int)              {}
func (p *ownProcess) hold(time.Duration, bool)   {}
func (p *ownProcess) skew(time.Duration)         {}
func (p *ownProcess) real(t time.Time) time.Time { return t }
func (p *ownProcess) crash()                     {}

// A plainReal is a Redis for a client that is no redlock.
type plainReal struct{ client *redis.Client }

func (n plainReal) setNX(ctx context.Context, key, token string, ttl time.Duration) (bool, error) {
	return n.client.SetNX(ctx, key, token, ttl).Result()
}

// compareAndDelete is the script of the Redlock page.
func (n plainReal) compareAndDelete(ctx context.Context, key, token string) error {
	const script = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`
	return n.client.Eval(ctx, script, []string{key}, token).Err()
}
