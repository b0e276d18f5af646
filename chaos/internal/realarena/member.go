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
	"github.com/quorumlock/redlock/chaos/internal/drive"
	"github.com/quorumlock/redlock/chaos/internal/scenario"
	"github.com/quorumlock/redlock/internal/redisproc"
)

// A remote is a client in a process of its own, as it is seen from here. It is told
// by a word on its standard input what to do next, and reports on its standard
// output what happens; the end of its input is the end of it.
type remote struct {
	number    int
	plan      *scenario.Plan
	rec       *drive.Recorder
	leftovers *drive.Leftovers

	child    *redisproc.Child
	orders   io.WriteCloser
	out      io.Closer // of which reports reads
	reports  *bufio.Reader
	stderr   *tail
	done     chan string   // the words that it has carried out
	silent   chan struct{} // closed when no report will come any more; nil before listen
	expected atomic.Bool   // that it ends
	blamed   sync.Once
	pausing  sync.Mutex
}

// A report is a line of a client's output: something that has happened, or a word
// that it has carried out, or a token that no client will release.
type report struct {
	Event    *history.Event `json:"event,omitempty"`
	Done     string         `json:"done,omitempty"`
	Leftover string         `json:"lot,omitempty"`
}

// The words. With the second comes when the run has begun.
const (
	wordReady = "ready" // said by the client before it is told anything
	wordBegin = "begin"
	wordRest  = "rest"
	wordLast  = "last"
	wordWeigh = "weigh"
)

// How long a process may take that comes, does what is nearly nothing, or goes, on
// a busy machine and with many others.
const patience = 30 * time.Second

// newRemote starts a process, which is this program again, and has it wait for its
// first word.
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
	theirOut.Close() // or there would be no end of what it says
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
	// It may be that the whole program has begun again, and is about to do the same.
	r.child.Kill()
	r.end()
	return nil, fmt.Errorf("client %d: no client came of %s, whose main must begin with chaos.ClientMain: %v, %s", number, program, err, r.how())
}

// next reads a report. The error is io.EOF when there are no more.
func (r *remote) next() (got report, err error) {
	line, err := r.reports.ReadBytes('\n')
	if err != nil {
		return got, io.EOF // what it was about to say when it died is not said
	}
	if err := json.Unmarshal(line, &got); err != nil || got == (report{}) {
		return got, fmt.Errorf("it said %q, which is no report", strings.TrimSpace(string(line)))
	}
	return got, nil
}

// listen takes the reports of a client that works, until there are no more.
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
		case got.Leftover != "":
			r.leftovers.Add(got.Leftover)
		default:
			r.done <- got.Done
		}
	}
}

// blame notes, once, what a client has not done as it should.
func (r *remote) blame(err error) {
	r.blamed.Do(func() {
		r.rec.Note(history.Event{Kind: history.Left, Error: fmt.Sprintf("client %d, a process: %v", r.number, err)})
	})
}

// how tells of the end of a process.
func (r *remote) how() string {
	s := r.child.Ended()
	if last := r.stderr.String(); last != "" {
		s += ": " + last
	}
	return s
}

// order sends the client a word, and waits until that is done.
func (r *remote) order(word string, within time.Duration) error {
	_, _ = io.WriteString(r.orders, word+"\n") // one that has gone is found to be silent
	limit := time.NewTimer(within)
	defer limit.Stop()
	select {
	case <-r.done:
		return nil
	case <-r.silent:
		return fmt.Errorf("it was to %s, and has died: %s", word, r.how())
	case <-limit.C:
		r.expected.Store(true)
		r.child.Dump()
		<-r.silent
		return fmt.Errorf("it has not done within %v what it was told, %s: %s", within, word, r.how())
	}
}

func (r *remote) Enter(context.Context) error {
	r.silent = make(chan struct{})
	go r.listen()
	return r.order(fmt.Sprintf("%s %d", wordBegin, r.rec.Start.UnixNano()), patience)
}

func (r *remote) Rest() { r.longOrder(wordRest) }

func (r *remote) Last() { r.longOrder(wordLast) }

// Weigh is only for one that nothing else is asked of.
func (r *remote) Weigh() {
	if err := r.order(wordWeigh, patience); err != nil {
		r.blame(err)
	}
}

// longOrder is for what may take as long as locks are waited for.
func (r *remote) longOrder(word string) {
	if err := r.order(word, patience+time.Duration(len(r.plan.Names))*r.plan.Run.Bound); err != nil {
		r.blame(err)
	}
}

// Apply is a Pause: the others cannot be had here. One that is late does not end
// the next.
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
	<-r.silent // its last words have been heard
	// It is dead from some moment on, and for certain now.
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
		r.blame(fmt.Errorf("it was to leave: %s", how))
	}
}

// end leaves nothing of it, whatever it was about to do.
func (r *remote) end() {
	r.expected.Store(true)
	r.child.Kill()
	if r.silent != nil {
		<-r.silent
	}
	_ = r.orders.Close()
	_ = r.out.Close()
}

// A tail keeps the end of what is written to it.
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
