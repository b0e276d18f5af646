package recording

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/facts"
	"github.com/quorumlock/redlock/internal/listing"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/wire"
)

const (
	// chunk is how many keys are looked for, or read, at once: this takes a node less than a millisecond.
	chunk = 32

	// rest is a pause after each step, for each key that the step has read: a key takes a node some
	// 20 µs, so that it works a quarter of its time for the record at most.
	rest = 60 * time.Microsecond

	// beat is how often a node is asked whether it is there, and still the same.
	beat = time.Second

	// patience is for how long a node may leave a step unanswered.
	patience = 2 * time.Second

	// retry is how long to wait before a node that does not answer is asked again.
	retry = 200 * time.Millisecond

	// mostEvents is how many events of a key are kept until it is read.
	mostEvents = 8

	// mostTold is how many keys of which a node has told may be unread. If there are more, the node is walked.
	mostTold = 1 << 16
)

// A follower watches the locks of one node for the record.
//
// It reads a key when the node tells of a change of it (notify-keyspace-events), and otherwise when it comes across it
// in a walk through all keys. A node that tells is walked once, when the subscription begins: whatever changes after
// that is told, or the subscription breaks. Others are walked again and again. What comes and goes between two reads is
// not seen; a change that was told of meanwhile is at least known to have been (Line.By).
type follower struct {
	rec     *Recorder
	node    Node
	channel string // what a key's channel begins with
	ctx     context.Context
	cancel  context.CancelFunc
	client  *redis.Client
	inspect *redis.Script
	signal  chan struct{} // there is something to read

	// Of the goroutine that asks.
	looked, walked time.Time
	walking        bool
	cursor         uint64
	seen           map[string]bool // in this walk
	marker         string          // "": not known
	emptied        time.Time       // when it was last seen that it had forgotten
	loaded         bool            // the node has the script
	secret         bool            // the node does not say how it is configured

	// Under the Recorder's mutex.
	state    string // "": not known
	failed   error  // why it is silent
	answered time.Time
	tells    bool
	known    map[string]*lock // by key
	dirty    map[string]*news // by key: to be read
	rewalk   bool             // changes may have been missed

	subscribed, resubscribed bool // resubscribed: since the last look
	gaps                     int  // how often changes may have been missed: a subscription broke, or began

	complete bool // all that it had when the record began is written
}

// A news is what a node has told of a key by keyspace notifications, since the key was read.
type news struct {
	at    time.Time // the last event; zero: there was none
	first time.Time // of the lock's own key, the first event; zero: there was none
	by    []string
}

func newFollower(r *Recorder, n Node) *follower {
	f := &follower{
		rec: r, node: n, channel: keyspace(n.Options.DB), inspect: redis.NewScript(script.Inspect.Source), signal: make(chan struct{}, 1),
		known: make(map[string]*lock), dirty: make(map[string]*news), rewalk: true, answered: r.clock.now(),
	}
	f.ctx, f.cancel = context.WithCancel(r.ctx)
	f.client = listing.Client(n.Options, patience)
	return f
}

// run records the locks of the node until f.ctx ends.
func (f *follower) run() {
	stop := context.AfterFunc(f.ctx, func() { _ = f.client.Close() }) // one that reads a reply does not look at ctx
	defer stop()
	defer f.client.Close()
	f.rec.over.Go(f.listen)
	for f.ctx.Err() == nil {
		begun := f.rec.clock.now()
		limit, cancel := context.WithTimeout(f.ctx, patience)
		keys, err := f.step(limit, begun)
		cancel()
		switch {
		case f.ctx.Err() != nil:
		case err != nil:
			f.silent(err)
			f.pause(retry)
		case keys > 0:
			f.rec.mu.Lock()
			f.answered = begun
			f.rec.mu.Unlock()
			f.pause(rest * time.Duration(keys))
		default:
			f.idle()
		}
	}
}

// step sends the node one request at the instant at: about itself (look), about keys that may have changed, or for the next
// part of a walk. keys is about how many keys that concerned, for the pause afterwards; 0: nothing to ask. err: call silent.
func (f *follower) step(ctx context.Context, at time.Time) (keys int, err error) {
	if f.due(at) {
		return 1, f.look(ctx, at)
	}
	if keys, news := f.take(); len(keys) > 0 {
		return len(keys), f.read(ctx, keys, news)
	}
	if f.walks(at) {
		return chunk, f.walk(ctx, at)
	}
	f.knows()
	return 0, nil
}

// knows writes down, once, that the record has all that the node had when it began. Called when nothing is left to ask.
func (f *follower) knows() {
	f.rec.mu.Lock()
	defer f.rec.mu.Unlock()
	if !f.complete && len(f.dirty) == 0 {
		f.complete = true
		f.rec.write(&Line{Time: f.rec.clock.now(), Node: f.node.Name, State: StateWalked})
	}
}

// idle waits until a key is to be read (wake), or the node asked about itself (look) or for all keys (walk), or ctx ends.
func (f *follower) idle() {
	next := f.looked.Add(beat)
	if again := f.walked.Add(f.rec.every); again.Before(next) && !f.tells {
		next = again
	}
	timer := time.NewTimer(next.Sub(f.rec.clock.now()))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-f.signal:
	case <-f.ctx.Done():
	}
}

func (f *follower) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-f.ctx.Done():
	}
}

// due reports whether to look at the node itself at an instant: after a second (beat), or if it or its subscription is back.
func (f *follower) due(at time.Time) bool {
	f.rec.mu.Lock()
	defer f.rec.mu.Unlock()
	f.rec.lives(at)
	again := f.resubscribed || f.state != StateAnswers || at.Sub(f.looked) >= beat
	f.resubscribed = false
	return again
}

// look asks the node for its marker and whether it has keyspace notifications; an error if it cannot be walked and
// read.
func (f *follower) look(ctx context.Context, at time.Time) error {
	pipe := f.client.Pipeline()
	var notify *redis.MapStringStringCmd
	if !f.secret {
		notify = pipe.ConfigGet(ctx, "notify-keyspace-events")
	}
	marker := pipe.Get(ctx, script.Marker)
	walk := pipe.Scan(ctx, 0, script.Marker, 1)
	nobody := f.rec.prefix + "-"
	read := f.inspect.Eval(ctx, pipe, []string{nobody}, *script.Bucket(nobody))
	_, _ = pipe.Exec(ctx)
	err := walk.Err()
	if err == nil {
		_, err = readOf(read)
	}
	if err != nil {
		f.secret = false
		return err
	}
	f.looked = at
	events := ""
	if notify != nil {
		events, f.secret = notify.Val()["notify-keyspace-events"], notify.Err() != nil
	}
	f.rec.mu.Lock()
	defer f.rec.mu.Unlock()
	if tells := Tells(events) && f.subscribed; f.state != StateAnswers || tells != f.tells {
		f.state, f.failed, f.tells = StateAnswers, nil, tells
		f.gaps++
		f.rewalk = true
		f.rec.write(&Line{Time: f.rec.clock.now(), Node: f.node.Name, State: StateAnswers, Tells: tells})
	}
	f.recognize(marker.Val())
	for key, l := range f.known { // what expires may be told of late, and members of sets are not told of
		if l.over(at) || l.young {
			f.want(key, "", time.Time{})
		}
	}
	return nil
}

// recognize compares the node's marker (the key that names the server process, and since when it has its data) with
// that of the last look. If it is another one, the node has lost its data: what was known of its locks is dropped, and
// a line says so. Caller holds the Recorder's mutex.
func (f *follower) recognize(marker string) {
	is, ok := wire.ParseMarker(marker)
	before, had := wire.ParseMarker(f.marker)
	if had && !(ok && is.Same(before)) {
		for key, n := range f.dirty { // what ended before is not forgotten
			if l := f.known[key]; l != nil && slices.ContainsFunc(n.by, func(event string) bool { return slices.Contains(endings, event) }) {
				f.write(key, l, &lock{fence: l.fence}, n, n.at)
			}
		}
		f.emptied = f.rec.clock.now()
		f.rec.write(&Line{Time: f.emptied, Node: f.node.Name, State: StateForgot})
		clear(f.known) // what it has now is written again
		f.rewalk = true
	}
	f.marker = marker
}

// endings are the events by which a lock ends.
var endings = []string{"del", "zrem", "expired", "evicted"}

// Notify is a notify-keyspace-events that is enough.
const Notify = "K$zgxe"

// Tells reports whether a server with these notify-keyspace-events tells of all changes of locks. A is all of Notify but K.
func Tells(events string) bool {
	for _, class := range Notify {
		if !strings.ContainsRune(events, class) && (class == 'K' || !strings.Contains(events, "A")) {
			return false
		}
	}
	return true
}

// silent writes down that the node does not answer, and why, unless it has already. The node is then walked anew.
func (f *follower) silent(err error) {
	f.rec.mu.Lock()
	defer f.rec.mu.Unlock()
	if f.failed = f.why(err); f.state != StateSilent {
		f.state = StateSilent
		f.rec.write(&Line{Time: f.rec.clock.now(), Node: f.node.Name, State: StateSilent, Since: f.answered, Error: f.failed.Error()})
	}
	f.rewalk = true
}

// why puts the error of a request into words for the record: no answer in time, or what the node did instead.
func (f *follower) why(err error) error {
	status := wire.Classify(err)
	if status == wire.Timeout || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %v", patience)
	}
	e := &redlock.NodeError{Node: f.node.Name, Outcome: redlock.Outcome(status), Err: facts.Discreet(err)}
	return errors.New(strings.TrimPrefix(e.Error(), f.node.Name+": "))
}

// walks reports whether to ask for the next part of a walk through all keys. It begins one if changes may have been missed,
// or, if none is under way at a node that tells of no changes, when Recorder.every is over.
func (f *follower) walks(at time.Time) bool {
	f.rec.mu.Lock()
	defer f.rec.mu.Unlock()
	if f.rewalk || !f.walking && !f.tells && at.Sub(f.walked) >= f.rec.every {
		f.rewalk, f.walking, f.cursor, f.seen = false, true, 0, make(map[string]bool)
	}
	return f.walking
}

// walk asks for the next keys of a walk (SCAN), and has their locks read. After the last ones it has those locks read,
// too, that are known and were not among them.
func (f *follower) walk(ctx context.Context, at time.Time) error {
	keys, cursor, err := f.client.Scan(ctx, f.cursor, listing.Escape(f.rec.prefix)+"*", chunk).Result()
	if err != nil {
		f.walking = false
		return err
	}
	f.cursor = cursor
	f.rec.mu.Lock()
	defer f.rec.mu.Unlock()
	for _, key := range keys {
		if key, _, ok := f.lockOf(key); ok {
			f.seen[key] = true
			f.want(key, "", time.Time{})
		}
	}
	if cursor == 0 {
		for key := range f.known {
			if !f.seen[key] {
				f.want(key, "", time.Time{})
			}
		}
		f.walking, f.walked, f.seen = false, at, nil
	}
	return nil
}

// lockOf returns the key of the lock that key belongs to, and whether key is its queue's. Not ok: no lock of the
// record.
func (f *follower) lockOf(key string) (lock string, queue, ok bool) {
	lock, queue, ok = script.LockOf(key)
	return lock, queue, ok && strings.HasPrefix(lock, f.rec.prefix) && lock != f.rec.prefix && len(lock) <= redlock.MaxName
}

// want puts a lock's key among those to be read. event is what the node told of it at the instant at; "": of its queue. at
// is zero if it told of nothing: the key was found otherwise. Caller holds the Recorder's mutex.
func (f *follower) want(key, event string, at time.Time) {
	n := f.dirty[key]
	if n == nil {
		n = new(news)
		f.dirty[key] = n
	}
	if !at.IsZero() {
		n.at = at
	}
	if event != "" {
		if n.first.IsZero() {
			n.first = at
		}
		if len(n.by) < mostEvents {
			n.by = append(n.by, event)
		}
	}
	f.wake()
}

// wake makes idle return: there is something to ask.
func (f *follower) wake() {
	select {
	case f.signal <- struct{}{}:
	default:
	}
}

// take removes up to chunk keys from those to be read, told ones first, and returns them with what the node has told.
func (f *follower) take() (keys []string, all []*news) {
	f.rec.mu.Lock()
	defer f.rec.mu.Unlock()
	for _, told := range []bool{true, false} {
		for key, n := range f.dirty {
			if len(keys) == chunk {
				return keys, all
			}
			if n.at.IsZero() != told {
				keys, all = append(keys, key), append(all, n)
				delete(f.dirty, key)
			}
		}
	}
	return keys, all
}

// read reads locks and writes down what has changed. news is what the node has told of each key. If a read fails, or
// shows that the node has lost its data, the keys that are left are read again later.
func (f *follower) read(ctx context.Context, keys []string, news []*news) error {
	// Each reply shows the marker of its instant: a lock that is gone with the marker was not released. The node was
	// emptied, which look writes down first.
	mark := []string{}
	if f.marker != "" {
		mark = append(mark, script.Marker)
	}
	replies := make([]*redis.Cmd, len(keys))
	pipe := f.client.Pipeline()
	for i, key := range keys {
		ask := f.inspect.EvalSha
		if !f.loaded {
			ask = f.inspect.Eval
		}
		replies[i] = ask(ctx, pipe, append([]string{key}, mark...), *script.Bucket(key))
	}
	_, err := pipe.Exec(ctx)
	if f.loaded = !redis.HasErrorPrefix(err, "NOSCRIPT"); !f.loaded {
		return f.read(ctx, keys, news)
	}
	f.rec.mu.Lock()
	defer f.rec.mu.Unlock()
	at := f.rec.clock.now()
	for i, key := range keys {
		reply, err := readOf(replies[i])
		if err != nil {
			f.unread(keys[i:], news[i:])
			return err
		}
		if reply.Mark != f.marker && f.marker != "" {
			f.unread(keys[i:], news[i:])
			f.looked = time.Time{}
			return nil
		}
		f.learn(key, reply, news[i], at)
	}
	return nil
}

// readOf returns what a node has said of a lock, from the reply of inspect.lua; an error if it is no such reply.
func readOf(c *redis.Cmd) (*wire.Reply, error) {
	value, err := c.Result()
	reply := wire.Parse(wire.Inspect, value, err)
	if reply.Status == wire.Granted || reply.Status == wire.Foreign {
		return &reply, nil
	}
	return nil, cmp.Or(reply.Err, wire.Unexpected(value))
}

// unread undoes take for keys and their news; what was told since is added to that. Caller holds the Recorder's mutex.
func (f *follower) unread(keys []string, news []*news) {
	for i, key := range keys {
		n := news[i]
		if later := f.dirty[key]; later != nil { // told of while the key was read
			if n.first.IsZero() {
				n.first = later.first
			}
			if !later.at.IsZero() {
				n.at = later.at
			}
			n.by = append(n.by, later.by...)
			n.by = n.by[:min(len(n.by), mostEvents)]
		}
		f.dirty[key] = n
	}
}

// learn takes a, what the node has of a lock at an instant, and writes a line if holders, waiters or fence are not
// those that are known. n is what the node has told of the lock. Caller holds the Recorder's mutex.
func (f *follower) learn(key string, a *wire.Reply, n *news, at time.Time) {
	before := f.known[key]
	if before == nil {
		before = &lock{gaps: f.gaps}
	}
	if later := f.dirty[key]; later != nil && !later.at.IsZero() {
		n.at = later.at // told of while the key was read
	}
	l := lockOf(a, at)
	l.gaps = f.gaps
	if l.token == before.token {
		l.ttl = max(l.ttl, before.ttl)
	}
	l.young = len(l.token)+len(l.holders) > 0 && !l.held(before)
	if len(l.token)+len(l.holders)+len(l.waiting) == 0 {
		delete(f.known, key)
	} else {
		f.known[key] = l
	}
	if l.same(before) {
		return
	}
	when := at
	if !n.at.IsZero() {
		when = later(n.at, f.emptied) // what is there came after the node was emptied
	}
	f.write(key, before, l, n, when)
}

// write writes a line: l, what the node has of a lock since the instant when, and the tokens of before, which it had, that
// are gone. n is what it has told of the lock. Caller holds the Recorder's mutex.
func (f *follower) write(key string, before, l *lock, n *news, when time.Time) {
	line := l.line(f, key, when)
	line.Told = f.tells && before.gaps == f.gaps
	if line.By = n.by; n.first.Before(when) {
		line.First = n.first
	}
	end := func(token string, until time.Time) {
		line.Ended = append(line.Ended, Ended{token, until.Sub(when).Milliseconds()})
	}
	if before.token != "" && before.token != l.token {
		end(before.token, before.until)
	}
	for _, h := range before.holders {
		if !slices.ContainsFunc(l.holders, h.is) {
			end(h.Token, h.until)
		}
	}
	f.rec.write(line)
}

// all iterates over the lines that say all that is known of the node at an instant, for the beginning of a new file.
func (f *follower) all(at time.Time) iter.Seq[*Line] {
	return func(yield func(*Line) bool) {
		state := &Line{Time: at, Node: f.node.Name, State: f.state, Tells: f.tells}
		if f.state == StateSilent {
			state.Since, state.Error = f.answered, f.failed.Error()
		}
		if f.state != "" && !yield(state) {
			return
		}
		for _, key := range slices.Sorted(maps.Keys(f.known)) {
			if !yield(f.known[key].line(f, key, at)) {
				return
			}
		}
		if f.complete {
			yield(&Line{Time: at, Node: f.node.Name, State: StateWalked})
		}
	}
}
