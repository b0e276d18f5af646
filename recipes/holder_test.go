package recipes

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/fence"
	"github.com/quorumlock/redlock/internal/testbed/redisproc"
)

// holderVariable makes this program a holder, and has its briefing.
const holderVariable = "REDLOCK_RECIPES_HOLDER"

// A briefing is everything that a holder needs.
type briefing struct {
	Nodes           []string
	Resource, Where string
	Name            string // of the lock and of its resource
}

// A report is the answer to a word.
type report struct {
	Fence int64
	Ended string // the error of the lock's context, and its cause
	Lost  bool   // the reason is redlock.ErrLost
	Stale bool   // the write was refused
	Err   string // anything else that went wrong
}

// holderOptions make locks short, and wait for busy nodes as long as that allows.
func holderOptions() *redlock.Options {
	return &redlock.Options{TTL: 500 * time.Millisecond, NodeTimeout: 250 * time.Millisecond}
}

// holder is the main function of a holder: it carries out orders, one a line, and reports.
func holder(text string) {
	if err := holds(text); err != nil {
		fmt.Fprintln(os.Stderr, "holder:", err)
		os.Exit(1)
	}
}

func holds(text string) error {
	var b briefing
	if err := json.Unmarshal([]byte(text), &b); err != nil {
		return err
	}
	i := slices.IndexFunc(resources, func(r resource) bool { return r.name == b.Resource })
	s, err := resources[i].open(b.Where)
	if err != nil {
		return err
	}
	defer s.close()
	lk, err := redlock.Connect(b.Nodes, holderOptions())
	if err != nil {
		return err
	}
	defer func() { _ = lk.Close() }()

	background, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	var lock *redlock.Lock
	var ctx context.Context
	words, reports := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	for words.Scan() {
		var r report
		switch words.Text() {
		case "acquire":
			lock, err = lk.Acquire(background, b.Name)
			if err == nil {
				r.Fence = lock.Fence()
				ctx = lock.Context(background)
				_, err = s.read(background, b.Name, lock.Fence())
			}
		case "write":
			if err := ctx.Err(); err != nil {
				r.Ended = fmt.Sprintf("%v: %v", err, context.Cause(ctx))
				r.Lost = errors.Is(context.Cause(ctx), redlock.ErrLost)
			}
			// A holder that checks the context does not come here. This one does not check it
			// before it writes, or has checked just before it was stopped.
			err = s.write(background, b.Name, lock.Fence(), "first, late")
		}
		if r.Stale = errors.Is(err, fence.ErrStale); err != nil && !r.Stale {
			r.Err = err.Error()
		}
		if err := reports.Encode(r); err != nil {
			return err
		}
	}
	return words.Err()
}

// A process is a holder as the test sees it.
type process struct {
	child   *redisproc.Child
	words   *os.File
	out     *os.File
	reports *json.Decoder
}

func startHolder(t *testing.T, b briefing) *process {
	t.Helper()
	text, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	in, words, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	t.Cleanup(func() { _ = words.Close() })
	reports, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	t.Cleanup(func() { _ = reports.Close() })

	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), holderVariable+"="+string(text),
		"GORACE="+os.Getenv("GORACE")+" atexit_sleep_ms=0") // it would be a second for each
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, os.Stderr
	child, err := redisproc.StartChild(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(child.Kill)
	return &process{child, words, reports, json.NewDecoder(reports)}
}

// tell sends it an order, which stays in the pipe while the process is stopped.
func (p *process) tell(t *testing.T, word string) {
	t.Helper()
	if _, err := fmt.Fprintln(p.words, word); err != nil {
		t.Fatal(err)
	}
}

// report waits for the answer.
func (p *process) report(t *testing.T) (r report) {
	t.Helper()
	if err := p.out.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if err := p.reports.Decode(&r); err != nil {
		t.Fatalf("no report of the holder: %v", err)
	}
	if r.Err != "" {
		t.Fatalf("the holder: %s", r.Err)
	}
	return r
}

func (p *process) hang(t *testing.T) {
	t.Helper()
	if err := p.child.Hang(); err != nil {
		t.Fatal(err)
	}
}

func (p *process) resume(t *testing.T) {
	t.Helper()
	if err := p.child.Resume(); err != nil {
		t.Fatal(err)
	}
}

// end makes it end by itself.
func (p *process) end(t *testing.T) {
	t.Helper()
	_ = p.words.Close()
	select {
	case <-p.child.Done():
		if how := p.child.Ended(); how != "exit status 0" {
			t.Errorf("the holder ended with %s", how)
		}
	case <-time.After(patience):
		t.Errorf("the holder does not end")
	}
}

func urls(servers []*redisproc.Server) (all []string) {
	for _, s := range servers {
		all = append(all, "redis://"+s.Addr)
	}
	return all
}
