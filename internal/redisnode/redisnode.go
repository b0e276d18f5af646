// Package redisnode is a lane's connection to one Redis server: made by go-redis, and used without it. A lane is the
// client's ordered queue of requests to one node.
package redisnode

import (
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock/internal/facts"
	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/resp"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/wire"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// A Server is one Redis: it implements lane.Server.
//
// It has a connection of its own, made from the caller's settings (address, dialer, TLS, credentials, database), and
// does not use the caller's pool: what is right for a cache breaks a lock. By default, go-redis does not let a context
// bound a command, waits 5 s for a reply, and sends a pipeline up to four times when a reply is lost. And a pool hands
// out connections in any order, while a lane keeps its requests in order.
type Server struct {
	options *redis.Options
	admit   func(facts.Facts) error                  // why such a server may not vote; nil: it may
	retire  func()                                   // see Retire
	greet   func(context.Context, *redis.Conn) error // the caller's OnConnect
	session lane.Session

	scripts atomic.Pointer[hashes] // of the scripts of the process that the server is now

	client atomic.Pointer[redis.Client] // nil before the first connect
	socket atomic.Pointer[net.Conn]     // its connection; nil: none (see dial)
	ended  atomic.Bool                  // Interrupt was called

	conn *redis.Conn // the client's, over socket

	credentials credentials
	lifetime    time.Duration // of a connection; 0: no bound
	round       time.Duration // for how long a caller waits for a reply
	trip        time.Duration // a round trip, measured by Connect

	// The writing of batches (batch.go). Only the lane's writer goroutine uses these.
	out   resp.Writer
	until time.Time // when to replace the connection; zero: at no certain time

	owed  atomic.Int32 // batches that were written over the connection, and not received
	stale atomic.Bool  // replace the connection now

	// The reading of replies. The lane's reader goroutine uses these while replies are owed, its writer otherwise.
	in     resp.Reader
	reads  *net.Conn    // the socket that in reads from
	opened []openAnswer // answers of this batch that wait for the trailer
	said   wire.Trailer // the last trailer
	marker string       // of the last trailer that had one
	last   time.Time    // when a batch was last received
}

// New returns a Server for the caller's options, not connected yet. A caller waits for a reply for round; after
// patience without one the connection is given up. Joining the node fails with the error of admit, if any, which gets
// what the server says of itself. Server.Retire calls retire. session says what to tell the node, and gets its answer.
func New(options *redis.Options, round, patience time.Duration, admit func(facts.Facts) error, retire func(), session lane.Session) *Server {
	s := &Server{round: round, admit: admit, retire: retire, greet: options.OnConnect, session: session}
	s.credentials.given, s.lifetime = options, options.ConnMaxLifetime
	o := *options
	o.StreamingCredentialsProvider, o.CredentialsProviderContext, o.CredentialsProvider = nil, nil, nil // see credentials.go
	o.MaxRetries = -1                                                                                   // the lane decides what a lost reply means
	o.ReadTimeout = patience
	o.WriteTimeout = patience
	o.DialTimeout = min(o.DialTimeout, max(patience, time.Second))
	o.DialerRetries = 1 // the lane tries again
	o.PoolSize, o.MinIdleConns, o.MaxIdleConns, o.MaxActiveConns = 2, 0, 1, 0
	o.ConnMaxIdleTime, o.ConnMaxLifetime = -1, 0 // see standing.go
	o.PipelineReadBufferSize, o.PipelineWriteBufferSize, o.AutoPipelineOptions = 0, 0, nil
	o.Protocol = 2 // RESP3 would look for push messages before each reply
	o.ClientSideCache, o.ClientSideCacheConfig = nil, nil
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	o.Limiter = nil
	o.DisableIdentity = true // CLIENT SETINFO: if an ACL denies it, each connection adds to the ACL log
	s.options = &o
	return s
}

// Connect makes the connection, joins the node (prepare), and measures a round trip. ctx bounds the dialing; the
// timeouts for a reply bound the rest. After an error there is no connection.
func (s *Server) Connect(ctx context.Context) error {
	err := s.open(ctx, s.onConnect)
	if err == nil {
		begin := time.Now() // the handshake delays what comes before
		err = s.conn.Ping(context.WithoutCancel(ctx)).Err()
		s.trip = time.Since(begin)
	}
	if err != nil {
		s.keep(nil)
	}
	return explained(err)
}

// open makes the connection: go-redis greets the server over it (credentials, database, name), and then calls greet.
// open dials itself, and gives the connection to go-redis, which would log each dial that fails.
func (s *Server) open(ctx context.Context, greet func(context.Context, *redis.Conn) error) error {
	if old := s.client.Load(); old != nil {
		old.Close()
	}
	o := *s.options
	if err := s.credentials.fill(ctx, &o); err != nil {
		s.keep(nil)
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.options.DialTimeout)
	defer cancel()
	first, err := s.dial(ctx, s.options.Network, s.options.Addr)
	if err != nil {
		return err
	}
	greeted := newGreeting(first)
	o.OnConnect = greet
	var once sync.Once
	o.Dialer = func(context.Context, string, string) (conn net.Conn, err error) {
		err = net.ErrClosed
		once.Do(func() { conn, err = greeted, nil })
		return conn, err
	}
	client := redis.NewClient(&o)
	s.client.Store(client)
	if s.ended.Load() { // Interrupt did not see this client
		client.Close()
	}
	s.conn = client.Conn()
	if err := s.conn.Ping(context.WithoutCancel(ctx)).Err(); err != nil { // the timeouts bound it
		s.keep(nil)
		return greeted.why(err)
	}
	s.last = time.Now()
	s.stale.Store(false)
	s.owed.Store(0)
	s.until = s.expiry(s.last)
	return nil
}

// explained returns err for the operator: without secrets, and in plain words where its meaning is known; nil for nil.
func explained(err error) error { return facts.Explain(facts.Discreet(err)) }

// dial makes a connection, and closes the one before it: a Server never has two. go-redis closes its connections
// itself, but up to v9.22 not those whose handshake has failed (https://github.com/redis/go-redis/issues/3982): a Redis
// that is loading would get another one with each attempt.
//
// dial returns when ctx ends, which a dialer may ignore. go-redis's dialer ignores it with TLS: a server that takes
// connections and says nothing would keep it for the caller's DialTimeout. Such a dialer is left to end by itself.
func (s *Server) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	type dialed struct {
		conn net.Conn
		err  error
	}
	done := make(chan dialed, 1)
	go func() {
		conn, err := s.options.Dialer(ctx, network, addr)
		done <- dialed{conn, err}
	}()
	select {
	case d := <-done:
		if d.err != nil {
			return nil, d.err
		}
		s.keep(&d.conn)
		return d.conn, nil
	case <-ctx.Done():
		go func() {
			if d := <-done; d.err == nil {
				d.conn.Close()
			}
		}()
		return nil, context.Cause(ctx)
	}
}

// keep makes conn the current connection, and closes the one before it. nil: there is none from now on.
func (s *Server) keep(conn *net.Conn) {
	if old := s.socket.Swap(conn); old != nil {
		(*old).Close()
	}
}

// Retire calls what New was given for it: the node is no member of the set any more.
func (s *Server) Retire() { s.retire() }

// Interrupt closes the connection for good: calls under way return soon, and all later ones fail.
func (s *Server) Interrupt() {
	s.ended.Store(true)
	if client := s.client.Load(); client != nil {
		client.Close()
	}
	s.keep(nil)
	s.credentials.end()
}

// onConnect calls the caller's OnConnect, if any, and then prepare. go-redis calls it when it has greeted the server.
func (s *Server) onConnect(ctx context.Context, conn *redis.Conn) error {
	if s.greet != nil {
		if err := s.greet(ctx, conn); err != nil {
			return err
		}
	}
	return s.prepare(ctx, conn)
}

// hashes is what a connection has found out about its server when the node was joined.
type hashes struct {
	acquire string // the hash of the acquire script, which has the server's run_id in its text
	marker  string // the key of the marker; "": the client asks for none
	natives
}

// prepare joins the node. In a first round trip it asks the server what it is, whether other processes may know scripts that
// it was sent (probe.lua), and which commands it has. In a second one it loads the scripts, and runs join.lua, which writes
// the marker, a key that shows losses of data, unless this process has one. A server that does not say what it is (an ACL
// without INFO, a proxy, miniredis) gets a warning; one without scripts, an error.
func (s *Server) prepare(ctx context.Context, conn *redis.Conn) error {
	var info []*redis.StringCmd
	var probe, self *redis.Cmd
	var native nativeProbe
	hello := s.session.Hello()
	_, err := conn.Pipelined(ctx, func(p redis.Pipeliner) error {
		self = p.Do(ctx, "client", "info")
		for _, section := range infoSections {
			info = append(info, p.Info(ctx, section))
		}
		probe = p.Eval(ctx, script.Probe, []string{script.ProbeKey})
		native = probeNatives(ctx, p)
		return nil
	})
	if err != nil && !wire.IsReply(err) {
		return err
	}
	// A server without its password would close the connection, without an error, at a command as long as the next one.
	if err := self.Err(); wire.IsReply(err) && facts.Code(err.Error()) == "NOAUTH" {
		return err
	}
	about := factsOf(info, probe)
	if err := s.admit(about); err != nil {
		return err
	}
	runID, marker := "", ""
	if hello.Marked {
		runID, marker = about["run_id"], script.Marker
	}
	sent := s.session.Now()
	var join, release *redis.Cmd
	_, err = conn.Pipelined(ctx, func(p redis.Pipeliner) error {
		if hello.Marked {
			join = p.Eval(ctx, script.Join, []string{script.Marker, script.Told, script.Choice},
				runID, hello.Time, database(self), text(hello.Keep.Description), hello.Keep.Self, hello.While)
		} else {
			join = p.Eval(ctx, script.Join, nil)
		}
		for _, each := range script.All(runID) {
			p.ScriptLoad(ctx, each.Source)
		}
		release = p.EvalSha(ctx, script.Release.Hash, []string{script.ProbeKey}, "no token", "x", 0)
		return nil
	})
	denied := err != nil && err == release.Err() && join.Err() == nil && wire.IsReply(err) && wire.Classify(err) != wire.Unfit
	if err != nil && !denied {
		return err
	}
	mark, err := parseMark(join.Val())
	if err != nil {
		return err
	}
	mark.ScriptOnly = denied // what is acquired without a script is released by one
	s.scripts.Store(&hashes{script.Acquire(runID).Hash, marker, native.natives()})
	s.session.Joined(mark, sent)
	return nil
}

// factsOf returns what a server says of itself, by its replies to INFO and to the probe (probe.lua).
func factsOf(info []*redis.StringCmd, probe *redis.Cmd) facts.Facts {
	about := make(facts.Facts)
	for _, section := range info {
		about.Add(section.Val())
	}
	about.Probed(probe.Result())
	return about
}

// text returns the text of d, a description of the set, as the scripts take it; "" for nil.
func text(d *wire.Description) string {
	if d == nil {
		return ""
	}
	return d.Text()
}

// database returns the number of the connection's database, from self, the reply to CLIENT INFO; "": it does not say.
// The client's settings may not have it, and clients that disagreed about it would keep replacing each other's marker.
func database(self *redis.Cmd) string {
	about, _ := self.Text()
	for field := range strings.FieldsSeq(about) {
		if n, ok := strings.CutPrefix(field, "db="); ok {
			return n
		}
	}
	return ""
}

// parseMark reads value, the reply of join.lua. An error: it has another form, or a marker of another version.
func parseMark(value any) (mark wire.Mark, err error) {
	if v, ok := value.([]any); ok && len(v) == 4 {
		var ok1, ok2, ok3 bool
		mark.Value, ok1 = v[0].(string)
		mark.Before, ok2 = v[1].(string)
		mark.Now, ok3 = v[2].(int64)
		if kept, ok4 := v[3].(string); ok1 && ok2 && ok3 && ok4 {
			mark.Kept = wire.ParseKept(kept)
			return mark, wire.OtherVersion(mark.Value)
		}
	}
	return mark, wire.Unexpected(value)
}

// Join does over the present connection what Connect does over a new one (prepare): after NOSCRIPT, say, or to give the node
// a description of the set. Call it when no reply is owed. After an error, call Connect before anything else.
func (s *Server) Join() error { return s.prepare(context.Background(), s.conn) }
