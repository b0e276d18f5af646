package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock/internal/facts"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/seam"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// A redisServer is one Redis behind go-redis: the server of a lane.
//
// It has a connection of its own, made from the caller's settings (address,
// dialer, TLS, credentials, database), and not the caller's pool: what is right
// for a cache breaks a lock. go-redis does not let a context bound a command by
// default, waits 5 s for a reply, and sends a pipeline up to four times when a
// reply is lost; and a pool hands out connections in any order, while a lane is
// an order.
type redisServer struct {
	name    string
	options *redis.Options
	admit   func(facts.Facts) error                  // whether such a server may vote
	greet   func(context.Context, *redis.Conn) error // the caller's OnConnect
	memory  *memory

	client atomic.Pointer[redis.Client] // the one in use; nil before the first connect
	socket atomic.Pointer[net.Conn]     // its connection; see dial
	ended  atomic.Bool

	// What batches go through: one connection of the client's, kept.
	conn *redis.Conn
	pipe redis.Pipeliner
	last time.Time // when it was last seen well

	varies bool // its round trips, when it was connected

	// Commands by op and number of keys, used again for each batch: no allocation per
	// request.
	commands [opInspect + 1][mostReused][]*redis.Cmd
	order    []redis.Cmder
}

func newRedisServer(options *redis.Options, patience time.Duration, admit func(facts.Facts) error, m *memory) *redisServer {
	s := &redisServer{name: options.Addr, admit: admit, greet: options.OnConnect, memory: m}
	o := *options
	o.MaxRetries = -1 // a lost reply is ours to judge
	o.ReadTimeout = patience
	o.WriteTimeout = patience
	o.DialTimeout = min(o.DialTimeout, max(patience, time.Second))
	o.DialerRetries = 1 // the lane tries again
	o.PoolSize, o.MinIdleConns, o.MaxIdleConns, o.MaxActiveConns = 2, 0, 1, 0
	o.ConnMaxIdleTime, o.ConnMaxLifetime = -1, 0
	o.PipelineReadBufferSize, o.PipelineWriteBufferSize, o.AutoPipelineOptions = 0, 0, nil
	o.Protocol = 2 // no pushes to look for before each reply
	o.ClientSideCache, o.ClientSideCacheConfig = nil, nil
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	o.Limiter = nil
	o.DisableIdentity = true // CLIENT SETINFO: each connection of a user who may not would be in the ACL log
	o.OnConnect = s.onConnect
	s.options = &o
	return s
}

func (s *redisServer) addr() string { return s.name }

// connect dials once itself before it asks go-redis to, for a node that is down
// is an ordinary thing here, and go-redis logs each dial that fails.
func (s *redisServer) connect(ctx context.Context) (rtt time.Duration, err error) {
	if old := s.client.Load(); old != nil {
		old.Close()
	}
	ctx, cancel := context.WithTimeout(ctx, s.options.DialTimeout)
	defer cancel()
	first, err := s.dial(ctx, s.options.Network, s.options.Addr)
	if err != nil {
		return 0, err
	}
	var once sync.Once
	o := *s.options
	o.Dialer = func(ctx context.Context, network, addr string) (conn net.Conn, err error) {
		once.Do(func() { conn = first })
		if conn != nil {
			return conn, nil
		}
		return s.dial(ctx, network, addr)
	}
	client := redis.NewClient(&o)
	s.client.Store(client)
	if s.ended.Load() { // interrupt did not see this client
		client.Close()
	}
	s.take(client)
	ctx = context.WithoutCancel(ctx) // from here on it is bounded by patience
	err = s.conn.Ping(ctx).Err()
	rtt = time.Hour
	longest := time.Duration(0)
	for range 3 { // the first has been delayed by the handshake, another perhaps by others
		begin := time.Now()
		if err == nil {
			err = s.conn.Ping(ctx).Err()
		}
		took := time.Since(begin)
		rtt, longest = min(rtt, took), max(longest, took)
	}
	s.varies = longest > rtt*3/2
	if err != nil {
		s.keep(nil)
	}
	return rtt, facts.Discreet(err)
}

// unsteady reports whether round trips took very different times when it was connected.
func (s *redisServer) unsteady() bool { return s.varies }

// dial makes a connection, and closes the one before it, for a strand never has
// two. go-redis closes its connections itself, but up to v9.22 none whose greeting
// has failed (https://github.com/redis/go-redis/issues/3982): a server that is
// loading would get another one with each attempt.
func (s *redisServer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := s.options.Dialer(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	s.keep(&conn)
	return conn, nil
}

func (s *redisServer) keep(conn *net.Conn) {
	if old := s.socket.Swap(conn); old != nil {
		(*old).Close()
	}
}

func (s *redisServer) fork() server {
	f := &redisServer{name: s.name, admit: s.admit, greet: s.greet, memory: s.memory}
	o := *s.options
	o.OnConnect = f.onConnect
	f.options = &o
	return f
}

// take keeps one of the client's connections.
func (s *redisServer) take(client *redis.Client) {
	s.conn = client.Conn()
	s.pipe = s.conn.Pipeline()
	s.last = time.Now()
}

// refresh has go-redis look whether the connection still stands after it has not
// been used for a while, and make a new one if not: a server that was restarted
// between two locks shall not cost the next one a vote.
func (s *redisServer) refresh() {
	if time.Since(s.last) > time.Second {
		s.conn.Close() // goes back to the pool, which checks what it hands out
		s.take(s.client.Load())
	}
}

func (s *redisServer) interrupt() {
	s.ended.Store(true)
	if client := s.client.Load(); client != nil {
		client.Close()
	}
	s.keep(nil)
}

// onConnect prepares each new connection before its first command, also one that
// go-redis makes by itself when it finds the last one closed: the node says what
// it is, and gets the scripts.
func (s *redisServer) onConnect(ctx context.Context, conn *redis.Conn) error {
	if s.greet != nil {
		if err := s.greet(ctx, conn); err != nil {
			return err
		}
	}
	return s.prepare(ctx, conn)
}

// prepare asks the server what it is, and whether it keeps scripts to itself, in one round
// trip, and in a second one sees to its marker and loads the scripts. A server that will
// not say what it is (an ACL without INFO, a proxy, a plain miniredis) is only unknown; one
// that does not take scripts is of no use.
func (s *redisServer) prepare(ctx context.Context, conn *redis.Conn) error {
	var info []*redis.StringCmd
	var probe, self *redis.Cmd
	_, err := conn.Pipelined(ctx, func(p redis.Pipeliner) error {
		self = p.Do(ctx, "client", "info")
		for _, section := range infoSections {
			info = append(info, p.Info(ctx, section))
		}
		probe = p.Eval(ctx, script.Probe, []string{script.ProbeKey})
		return nil
	})
	if err != nil && !isReply(err) {
		return err
	}
	about := make(facts.Facts)
	for _, section := range info {
		about.Add(section.Val())
	}
	about.Probed(probe.Result())
	if err := s.admit(about); err != nil {
		return err
	}
	var join *redis.Cmd
	sent := s.memory.now()
	_, err = conn.Pipelined(ctx, func(p redis.Pipeliner) error {
		if hello := s.memory.hello(); hello.Marked {
			join = p.Eval(ctx, script.Join, []string{script.Marker, script.OldMarker}, about["run_id"], hello.Longest.Milliseconds(), hello.Time, database(self))
		} else {
			join = p.Eval(ctx, script.Join, nil)
		}
		for _, each := range script.All(s.memory.runID(about["run_id"])) {
			p.ScriptLoad(ctx, each.Source)
		}
		return nil
	})
	if err != nil {
		return err
	}
	mark, err := parseMark(join.Val())
	if err == nil {
		s.memory.joined(mark, sent)
	}
	return err
}

// database is the number of the one that a connection is in, by the server's own word: the
// client's settings need not know, and a marker that two clients take for that of different
// databases would be written anew all the time. Empty: the server does not say.
func database(self *redis.Cmd) string {
	about, _ := self.Text()
	for field := range strings.FieldsSeq(about) {
		if n, ok := strings.CutPrefix(field, "db="); ok {
			return n
		}
	}
	return ""
}

// parseMark reads what join.lua replies.
func parseMark(value any) (mark seam.Mark, err error) {
	if v, ok := value.([]any); ok && len(v) == 3 {
		var ok1, ok2, ok3 bool
		mark.Value, ok1 = v[0].(string)
		mark.Before, ok2 = v[1].(string)
		mark.Now, ok3 = v[2].(int64)
		if ok1 && ok2 && ok3 {
			return mark, nil
		}
	}
	return mark, fmt.Errorf("unexpected reply %v", value)
}

func (s *redisServer) join() error { return s.prepare(context.Background(), s.conn) }

// mostReused is up to how many keys a lock has whose commands serve again.
const mostReused = 10

// command gives one for a step in a batch. Its arguments lie in a slice of ours, so that it
// can serve again in a later batch.
func (s *redisServer) command(q *request, used *[opInspect + 1][mostReused]int) *redis.Cmd {
	n := len(q.claim.keys) - 1
	if n >= mostReused {
		return redis.NewCmd(context.Background(), s.fill([]any{"evalsha"}, q)...)
	}
	all, k := &s.commands[q.step()][n], used[q.step()][n]
	used[q.step()][n]++
	if k == len(*all) {
		args := s.fill([]any{"evalsha"}, q)
		*all = append(*all, redis.NewCmd(context.Background(), args...))
	}
	cmd := (*all)[k]
	s.fill(cmd.Args(), q)
	return cmd
}

// fill puts a request into a command's arguments, of which there are as many each
// time. They are pointers, so that nothing is allocated.
func (s *redisServer) fill(args []any, q *request) []any {
	c := q.claim
	args = args[:1]
	switch q.step() {
	case opAcquire:
		args = c.named(args, &s.memory.script.Load().acquire, false)
		args = append(args, &c.token, &c.millis, &q.number, &q.latest, &q.mark, &q.ticket, &c.waiter, &c.lease, &s.memory.opts.Owner, &c.ways, &c.slots, &c.try)
		args = c.buckets(args)
	case opRaise:
		args = append(c.named(args, script.Raise.Hash, false), &c.token, &c.fence, &c.ways)
		args = c.buckets(args)
	case opExtend:
		args = append(c.named(args, script.Extend.Hash, false), &c.token, &c.millis, &c.ways)
	case opRelease:
		args = append(c.named(args, &s.memory.script.Load().release, false), &c.token, &c.ways, &c.slot, &q.next, script.Bucket(c.keys[0]))
	case opYield:
		args = append(c.named(args, script.Yield.Hash, false), &c.token, &c.ticket, &c.waiter, &c.lease, &s.memory.opts.Owner, &q.latest, &c.ways, &c.slot, &c.try)
	case opLeave:
		args = append(c.named(args, script.Leave.Hash, false), &c.waiter, &c.ticket, &c.ways, &c.try)
	case opInspect:
		args = append(c.named(args, script.Inspect.Hash, s.memory.marked()), script.Bucket(c.keys[0]))
	}
	return args
}

// named appends which script it is, and the claim's keys.
func (c *claim) named(args []any, hash any, marked bool) []any {
	n := len(c.keys)
	if marked {
		n++
	}
	args = append(args, hash, n)
	for i := range c.keys {
		args = append(args, &c.keys[i])
	}
	if marked {
		args = append(args, script.Marker)
	}
	return args
}

// buckets appends those of the claim's keys.
func (c *claim) buckets(args []any) []any {
	for _, key := range c.keys {
		args = append(args, script.Bucket(key))
	}
	return args
}

func (s *redisServer) vouches(mark string, micros, number int64, sent time.Time) bool {
	return s.memory.vouches(mark, micros, number, sent)
}

func (s *redisServer) exec(batch []*request) error { return carryOut(s, s.memory, batch) }

// errUnasked is a command's error until its reply has been read. go-redis leaves
// the commands of a pipeline as they are when it cannot get a connection because
// the server said no to the handshake (credentials, say, or too many clients):
// without this mark, one that is used again would still have the reply of the
// time before.
var errUnasked = errors.New("no reply")

// pipeline sends a batch and reads the replies.
func (s *redisServer) pipeline(batch []*request) error {
	var used [len(s.commands)][mostReused]int
	s.order = s.order[:0]
	for _, q := range batch {
		cmd := s.command(q, &used)
		cmd.SetErr(errUnasked)
		s.order = append(s.order, cmd)
	}
	ctx := context.Background()
	s.refresh()
	_ = s.pipe.BatchProcess(ctx, s.order...)
	_, failure := s.pipe.Exec(ctx)
	failure = facts.Discreet(failure)
	s.last = time.Now()
	var broken error
	for i, q := range batch {
		cmd := s.order[i].(*redis.Cmd)
		err := cmd.Err()
		if err == errUnasked {
			err = cmp.Or(failure, err)
			broken = err
		} else if err != nil && !isReply(err) {
			broken = err
		}
		q.read(cmd.Val(), err)
	}
	return broken
}
