package realarena

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/chaos/internal/client"
	"github.com/quorumlock/redlock/chaos/internal/drive"
	"github.com/quorumlock/redlock/chaos/internal/scenario"
	"github.com/quorumlock/redlock/internal/testbed/redisproc"
)

// A remote is the driver's side of a client in a process of its own. It sends orders to the
// client's standard input, and reads reports from its standard output; at the end of its input the
// client ends.
type remote struct {
	number    int
	role      client.Role
	plan      *scenario.Plan
	rec       *drive.Recorder
	leftovers *drive.Leftovers

	child    *redisproc.Child
	orders   io.WriteCloser
	out      io.Closer // what reports reads from
	reports  *bufio.Reader
	stderr   *tail
	done     chan string   // the orders that it has carried out
	silent   chan struct{} // closed when no report will come any more; nil before listen
	expected atomic.Bool   // its end is expected
	blamed   sync.Once
	pausing  sync.Mutex
}

// A report is a line of a client's output: an event, an order that it has carried out, or a token
// that no client will release.
type report struct {
	Event    *history.Event `json:"event,omitempty"`
	Done     string         `json:"done,omitempty"`
	Leftover []byte         `json:"lot,omitempty"` // any bytes: not every token is text
}

// The orders. The second one has the time at which the run began, and the client's role.
const (
	wordReady = "ready" // sent by the client before its first order
	wordBegin = "begin"
	wordRest  = "rest"
	wordLast  = "last"
	wordWeigh = "weigh"
)

// How long a process may take to start, to carry out a small order, or to end, on a busy machine
// and with many others.
const patience = 30 * time.Second

// newRemote starts a process, which is this program again, and which waits for its first order.
func newRemote(number int, b briefing) (*remote, error) {
	b.Number = number
	text, err := b.marshal()
	if err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	theirIn, orders, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		theirIn.Close()
		orders.Close()
		return nil, err
	}
	r := &remote{
		number: number, plan: b.Plan, orders: orders, out: out, reports: bufio.NewReader(out),
		stderr: new(tail), done: make(chan string, 1),
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), ClientVariable+"="+text)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirIn, theirOut, r.stderr
	r.child, err = redisproc.StartChild(cmd)
	theirIn.Close()
	theirOut.Close() // or its output would have no end
	if err != nil {
		orders.Close()
		out.Close()
		return nil, err
	}
	late := time.AfterFunc(patience, r.child.Kill)
	defer late.Stop()
	first, err := r.next()
	if err == nil && first.Done == wordReady {
		return r, nil
	}
	// Perhaps the whole program has started again, and is about to start processes of its own.
	r.child.Kill()
	r.end()
	return nil, fmt.Errorf("client %d: no client came of %s, whose main must begin with chaos.ClientMain: %v, %s", number, program, err, r.how())
}

// next reads a report. The error is io.EOF when there are no more.
func (r *remote) next() (got report, err error) {
	line, err := r.reports.ReadBytes('\n')
	if err != nil {
		return got, io.EOF // a report that was cut off when it died does not count
	}
	if err := json.Unmarshal(line, &got); err != nil || got.Event == nil && got.Done == "" && got.Leftover == nil {
		return got, fmt.Errorf("it said %q, which is no report", strings.TrimSpace(string(line)))
	}
	return got, nil
}

// listen takes in the reports of a working client until there are no more.
func (r *remote) listen() {
	defer close(r.silent)
	for {
		switch got, err := r.next(); {
		case err == io.EOF:
			if !r.expected.Load() {
				r.blame(fmt.Errorf("it has died: %s", r.how()))
			}
			return
		case err != nil:
			r.blame(err)
		case got.Event != nil:
			r.rec.Add(*got.Event)
		case got.Leftover != nil:
			r.leftovers.Add(string(got.Leftover))
		default:
			r.done <- got.Done
		}
	}
}

// blame records the first error of a client.
func (r *remote) blame(err error) {
	r.blamed.Do(func() {
		r.rec.Note(history.Event{Kind: history.Left, Error: fmt.Sprintf("client %d, a process: %v", r.number, err)})
	})
}

// how describes the end of a process.
func (r *remote) how() string {
	s := r.child.Ended()
	if last := r.stderr.String(); last != "" {
		s += ": " + last
	}
	return s
}

// order sends the client an order, and waits until it is carried out.
func (r *remote) order(word string, within time.Duration) error {
	_, _ = io.WriteString(r.orders, word+"\n") // if the process is gone, silent shows it
	limit := time.NewTimer(within)
	defer limit.Stop()
	select {
	case <-r.done:
		return nil
	case <-r.silent:
		return fmt.Errorf("it got the order %s, and has died: %s", word, r.how())
	case <-limit.C:
		r.expected.Store(true)
		r.child.Dump()
		<-r.silent
		return fmt.Errorf("within %v it has not carried out the order %s: %s", within, word, r.how())
	}
}

func (r *remote) Enter(context.Context) error {
	r.silent = make(chan struct{})
	go r.listen()
	role, err := json.Marshal(r.role)
	if err != nil {
		return err
	}
	return r.order(fmt.Sprintf("%s %d %s", wordBegin, r.rec.Start.UnixNano(), role), patience)
}

func (r *remote) Rest() { r.longOrder(wordRest) }

func (r *remote) Last() { r.longOrder(wordLast) }

// Weigh may only be called while there is no other order.
func (r *remote) Weigh() {
	if err := r.order(wordWeigh, patience); err != nil {
		r.blame(err)
	}
}

// longOrder is for orders that may take as long as waiting for locks.
func (r *remote) longOrder(word string) {
	if err := r.order(word, patience+time.Duration(len(r.plan.Names))*r.plan.Run.Bound); err != nil {
		r.blame(err)
	}
}

// Apply injects a Pause: this arena has no other fault of clients. The end of a late one does not end the next.
func (r *remote) Apply(f history.Fault) {
	r.pausing.Lock()
	defer r.pausing.Unlock()
	from := r.rec.Now()
	err := r.child.Hang()
	if err == nil {
		time.Sleep(f.For)
		err = r.child.Resume()
	}
	r.rec.Add(history.Event{At: from, Kind: history.Held, Client: r.number, Until: r.rec.Now()})
	if err != nil && !r.expected.Load() {
		r.blame(err)
	}
}

func (r *remote) Die() {
	from := r.rec.Now()
	r.expected.Store(true)
	r.child.Kill()
	<-r.silent // its last reports have been read
	// It is dead for certain now.
	r.rec.Add(history.Event{At: from, Kind: history.Held, Client: r.number, Until: r.rec.Now()})
	r.rec.Note(history.Event{Kind: history.Crashed, Client: r.number})
	r.end()
}

func (r *remote) Leave() {
	r.expected.Store(true)
	_ = r.orders.Close()
	select {
	case <-r.child.Done():
	case <-time.After(patience):
		r.child.Dump()
	}
	<-r.silent
	if how := r.how(); how != "exit status 0" {
		r.blame(fmt.Errorf("it got the order to leave: %s", how))
	}
}

// end ends the process, whatever it was about to do.
func (r *remote) end() {
	r.expected.Store(true)
	r.child.Kill()
	if r.silent != nil {
		<-r.silent
	}
	_ = r.orders.Close()
	_ = r.out.Close()
}

// A tail keeps the end of its input.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailSize = 16 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - tailSize; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}
