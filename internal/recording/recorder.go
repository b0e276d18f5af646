package recording

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Every is the usual time from one look at all locks of a node to the next one.
const Every = time.Second

// alive is how often there is a line at least: what is after the last one was not recorded.
const alive = 10 * time.Second

// A Node is a node to follow.
type Node struct {
	Name    string
	Options *redis.Options
}

// A Recorder follows nodes, and writes what changes. Its memory is bounded by the locks that the nodes have:
// some 300 bytes each for a node, and the names and tokens.
type Recorder struct {
	prefix string
	every  time.Duration
	ctx    context.Context
	cancel context.CancelCauseFunc
	over   sync.WaitGroup
	clock  clock

	mu        sync.Mutex // protects what follows, and what the followers know
	file      *File
	wrote     time.Time // the last line
	set       Set
	followers map[string]*follower
}

// New makes a Recorder of the locks whose keys have this prefix. Follow says on which nodes. Nodes that do not tell of
// changes are walked again when every is over.
func New(file *File, prefix string, every time.Duration) *Recorder {
	r := &Recorder{prefix: prefix, every: every, file: file, followers: make(map[string]*follower)}
	r.ctx, r.cancel = context.WithCancelCause(context.Background())
	return r
}

// errClosed is the cause of the end of a Recorder that was closed.
var errClosed = errors.New("closed")

// Follow records the locks on these nodes from now on, which are the members of set; not those of the last call any
// more. A node that was in that one, too, is followed without a break.
func (r *Recorder) Follow(set Set, nodes []Node) {
	r.mu.Lock()
	defer r.mu.Unlock()
	set.Prefix, set.Again = r.prefix, len(r.followers) > 0
	r.set = set
	r.write(&Line{Time: r.clock.now(), Set: &set})
	left := maps.Clone(r.followers)
	for _, n := range nodes {
		delete(left, n.Name)
		if r.followers[n.Name] == nil {
			f := newFollower(r, n)
			r.followers[n.Name] = f
			r.over.Go(f.run)
		}
	}
	for name, f := range left {
		f.cancel()
		delete(r.followers, name)
	}
}

// Done is closed when the Recorder records nothing any more: it was closed, or cannot write to its file (Err).
func (r *Recorder) Done() <-chan struct{} { return r.ctx.Done() }

// Err returns the error of the file that ended the Recorder, also after Close; nil: it has not ended, or Close has ended it.
func (r *Recorder) Err() error {
	if err := context.Cause(r.ctx); !errors.Is(err, errClosed) {
		return err
	}
	return nil
}

// Close ends the record with a line that says so, and closes the file. The error is Err, or that of the last write.
func (r *Recorder) Close() error {
	r.cancel(errClosed)
	r.over.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.Err()
	if err == nil {
		err = r.file.add(&Line{Time: r.clock.now(), End: true})
	}
	if errors.Is(err, errFull) {
		err = nil
	}
	if closed := r.file.file.Close(); err == nil {
		err = closed
	}
	return err
}

// Silent returns the nodes that do not answer, with the reasons, and those that answer without keyspace notifications
// (mute). known is false until each node has answered, or failed to, once.
func (r *Recorder) Silent() (silent map[string]error, mute []string, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	silent, known = make(map[string]error), true
	for name, f := range r.followers {
		known = known && f.state != ""
		switch {
		case f.failed != nil:
			silent[name] = f.failed
		case f.state == StateAnswers && !f.tells:
			mute = append(mute, name)
		}
	}
	slices.Sort(mute)
	return silent, mute, known
}

// write adds a line, to a new file if this one is full. If that fails, it ends the Recorder. Caller holds r.mu.
func (r *Recorder) write(l *Line) {
	if r.ctx.Err() != nil {
		return
	}
	r.wrote = r.clock.now()
	err := r.file.add(l)
	if errors.Is(err, errFull) {
		err = r.again(l)
	}
	if err != nil {
		r.cancel(err)
	}
}

// lives writes a line with only the time if none was written for alive: all up to it was recorded. Caller holds r.mu.
func (r *Recorder) lives(at time.Time) {
	if at.Sub(r.wrote) >= alive {
		r.write(&Line{Time: at})
	}
}

// again begins a new file, with the line first, and with all that is known. It fails if that takes more than half of
// the file: then new files with little else would follow each other. Caller holds r.mu.
func (r *Recorder) again(first *Line) error {
	at, size := r.clock.now(), int64(0)
	for l := range r.all(at, first) {
		text, err := encode(l)
		if err != nil {
			return err
		}
		if size += int64(len(text)); size > r.file.half/2 {
			return fmt.Errorf("the locks that there are do not fit into a quarter of the record's size, %d bytes", r.file.half/2)
		}
	}
	if err := r.file.next(); err != nil {
		return err
	}
	for l := range r.all(at, first) {
		if err := r.file.add(l); err != nil {
			return err
		}
	}
	return nil
}

// all iterates over the lines with which a new file begins: the set, first, and all that is known at an instant.
func (r *Recorder) all(at time.Time, first *Line) iter.Seq[*Line] {
	return func(yield func(*Line) bool) {
		set := r.set
		set.Again = true
		if first.Set == nil && !yield(&Line{Time: at, Set: &set}) || !yield(first) {
			return
		}
		for _, name := range slices.Sorted(maps.Keys(r.followers)) {
			for l := range r.followers[name].all(at) {
				if !yield(l) {
					return
				}
			}
		}
	}
}
