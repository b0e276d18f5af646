package integration_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/testbed/redisproc"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// childTask is the variable that makes a process of this test a client or an operator.
const childTask = "REDLOCK_TEST_CHILD"

// A task is what a child process is to do.
type task struct {
	URLs   []string
	Change *redlock.Change // of an operator; nil: it is a client
	Names  []string        // a client: what it locks
	Calls  int             // at once
}

const memberTTL = 2 * time.Second

// A held is what a client tells of one lock.
type held struct {
	Name    string
	Fence   int64
	In, Out int64 // by the system's clock, in nanoseconds; the end of validity, if that came first
	Waited  time.Duration
	Err     string
}

// runChild does a child's task, if this process is one.
func runChild() {
	text := os.Getenv(childTask)
	if text == "" {
		return
	}
	var todo task
	err := json.Unmarshal([]byte(text), &todo)
	if err == nil {
		var lk *redlock.Locker
		if lk, err = redlock.Connect(todo.URLs, &redlock.Options{TTL: memberTTL, MaxTTL: memberTTL}); err == nil {
			if todo.Change != nil {
				_, err = lk.Change(context.Background(), *todo.Change, func(what string, most time.Duration) {
					fmt.Fprintln(os.Stderr, "waits for", what, most)
				})
			} else {
				todo.lock(lk)
			}
			err = errors.Join(err, lk.Close())
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// lock locks until the parent closes the standard input.
func (k *task) lock(lk *redlock.Locker) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	var mu sync.Mutex
	says := json.NewEncoder(os.Stdout)
	var calls sync.WaitGroup
	for range k.Calls {
		calls.Go(func() {
			for ctx.Err() == nil {
				turn := held{Name: k.Names[rand.IntN(len(k.Names))]}
				came := time.Now()
				limit, stop := context.WithTimeout(ctx, 30*time.Second)
				l, err := lk.Acquire(limit, turn.Name, redlock.AutoRenew())
				stop()
				turn.Waited = time.Since(came)
				switch {
				case err == nil:
					turn.Fence, turn.In = l.Fence(), time.Now().UnixNano()
					hold := time.Duration(rand.Int64N(int64(20 * time.Millisecond)))
					if rand.IntN(50) == 0 {
						hold += memberTTL
					}
					alive := l.Context(ctx)
					select {
					case <-time.After(hold):
					case <-alive.Done():
					}
					turn.Out = min(time.Now().UnixNano(), l.Until().UnixNano())
					_ = l.Release(ctx)
				case ctx.Err() != nil:
					return
				default:
					turn.Err = err.Error()
				}
				mu.Lock()
				_ = says.Encode(turn)
				mu.Unlock()
			}
		})
	}
	calls.Wait()
}

// child starts a process with a task.
func child(t *testing.T, k task) (*exec.Cmd, io.WriteCloser, io.Reader) {
	t.Helper()
	text, err := json.Marshal(k)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), childTask+"="+string(text))
	c.Stderr = os.Stderr
	in, err1 := c.StdinPipe()
	out, err2 := c.StdoutPipe()
	if err := errors.Join(err1, err2, c.Start()); err != nil {
		t.Fatal(err)
	}
	return c, in, out
}

// TestMembersChangeUnderLoad: a set of real servers goes from three members to five, to four and to three, and in
// a long run each node is replaced once more, under the load of 64 calls in 8 processes that were given
// the first three nodes. A member is killed during each change, and comes back without its data; and so is
// the operator, whose work another one finishes. No two clients have a lock at once, fences rise, nobody
// waits for half a minute, and no client is started again.
func TestMembersChangeUnderLoad(t *testing.T) {
	need.Full(t)
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	servers := redistest.Servers(t, 5)
	urls, at := make([]string, 5), make(map[string]*redisproc.Server)
	for i, s := range servers {
		urls[i], at[s.Addr] = s.URL(), s
	}
	lk := open(t, redistest.Clients(t, servers[:3]), &redlock.Options{TTL: memberTTL, MaxTTL: memberTTL})
	if err := lk.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}

	var mu sync.Mutex
	var turns []held
	var reading sync.WaitGroup
	clients := make([]*exec.Cmd, 8)
	inputs := make([]io.WriteCloser, len(clients))
	for i := range clients {
		c, in, out := child(t, task{URLs: urls[:3], Names: []string{"a", "b", "c", "d"}, Calls: 8})
		clients[i], inputs[i] = c, in
		t.Cleanup(func() { _ = c.Process.Kill() })
		reading.Go(func() {
			lines := bufio.NewScanner(out)
			for lines.Scan() {
				var one held
				if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				turns = append(turns, one)
				mu.Unlock()
			}
		})
	}

	members := []string{servers[0].Addr, servers[1].Addr, servers[2].Addr}
	add := func(i int) redlock.Change { return redlock.Change{Add: servers[i].Addr} }
	remove := func(i int) redlock.Change { return redlock.Change{Remove: servers[i].Addr} }
	changes := []redlock.Change{add(3), add(4), remove(0), remove(1)}
	if need.Sized(false, false, true) {
		for _, i := range []int{2, 3, 4} {
			changes = append(changes, add((i+3)%5), remove(i))
		}
	}
	for n, c := range changes {
		begin := time.Now()
		victim, back := at[members[rng.IntN(len(members))]], make(chan struct{})
		away := time.Duration(rng.Int64N(int64(memberTTL)))
		time.AfterFunc(time.Duration(rng.Int64N(int64(memberTTL))), func() {
			defer close(back)
			victim.Kill()
			time.Sleep(away)
			if err := victim.Restart(); err != nil {
				t.Error(err)
			}
		})
		// The first operators die.
		for try := 0; ; try++ {
			operator, in, _ := child(t, task{URLs: urls, Change: &c})
			if try < 2 {
				time.AfterFunc(time.Duration(rng.Int64N(int64(memberTTL))), func() { _ = operator.Process.Kill() })
			}
			err := operator.Wait()
			in.Close()
			if m := lk.Members(); err == nil || c.Add != "" && slices.Contains(m.Nodes, c.Add) || c.Remove != "" && !slices.Contains(m.Nodes, c.Remove) {
				break
			}
			if time.Since(begin) > time.Minute {
				t.Fatalf("change %d is not done: %v", n, err)
			}
			_, _ = lk.TryAcquire(t.Context(), "operator") // learns
		}
		<-back
		for time.Since(begin) < time.Minute {
			if l, err := lk.Acquire(t.Context(), "operator"); err == nil {
				released(t, l)
			}
			m := lk.Members()
			if c.Add != "" == slices.Contains(m.Nodes, c.Add+c.Remove) {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		members = lk.Members().Nodes
		mu.Lock()
		t.Logf("%v: %d members, epoch %d, %d turns so far", time.Since(begin).Round(10*time.Millisecond), len(members), lk.Members().Epoch, len(turns))
		mu.Unlock()
	}
	for _, in := range inputs {
		in.Close()
	}
	for _, c := range clients {
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
	}
	reading.Wait()
	check(t, turns)
}

// check looks for two holders at once, a fence that does not rise, and a call without a lock.
func check(t *testing.T, turns []held) {
	t.Helper()
	last, longest := make(map[string]held), time.Duration(0)
	slices.SortFunc(turns, func(a, b held) int { return int(a.In - b.In) })
	for _, now := range turns {
		if longest = max(longest, now.Waited); now.Err != "" {
			t.Errorf("a call for %q waited in vain for %v: %s", now.Name, now.Waited, now.Err)
			continue
		}
		before := last[now.Name]
		if before.Out > now.In {
			t.Errorf("two hold %q: one until %v after the other has come; fences %d and %d", now.Name, time.Duration(before.Out-now.In), before.Fence, now.Fence)
		}
		if before.Fence >= now.Fence {
			t.Errorf("%q: fence %d comes after %d", now.Name, now.Fence, before.Fence)
		}
		last[now.Name] = now
	}
	t.Logf("%d turns, the longest wait took %v", len(turns), longest)
	if len(turns) < 300 || len(last) != 4 {
		t.Errorf("only %d turns, of %s", len(turns), strings.Join(slices.Sorted(maps.Keys(last)), ", "))
	}
}
