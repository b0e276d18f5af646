package redlock

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-multierror"
	"github.com/quorumlock/redlock/internal/facts"
	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/redisnode"
	"github.com/quorumlock/redlock/internal/resp"
	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/vote"
	"github.com/quorumlock/redlock/internal/waitlist"
	"github.com/quorumlock/redlock/internal/wire"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"
)

// TestQuorumErrorText: one line that says what, why and which node, for each reaction of a
// caller (E1, E2, E3).
func TestQuorumErrorText(t *testing.T) {
	q := func(op string, kind, cause error, nodes ...*NodeError) *QuorumError {
		e := &QuorumError{Op: op, Name: "jobs", N: 3, Need: 2, Kind: kind, Cause: cause}
		for _, n := range nodes {
			e.note(n)
		}
		return e
	}
	for _, tt := range []struct {
		err  error
		want string
	}{
		{q("acquire", ErrHeld, nil,
			&NodeError{Node: "a:1", Outcome: OutcomeHeld, Holder: "t0", TTL: 3 * time.Second},
			&NodeError{Node: "b:1", Outcome: OutcomeTimeout, Elapsed: 500*time.Millisecond + 1234}),
			`redlock: acquire "jobs": held by another: 0 votes, 2 of 3 needed (a:1: held by t0 for 3s; b:1: timeout after 500ms)`},
		{q("acquire", ErrNoQuorum, context.DeadlineExceeded,
			&NodeError{Node: "a:1", Outcome: OutcomeUnreachable, Err: errors.New("dial tcp: connection refused")},
			&NodeError{Node: "b:1", Outcome: OutcomeTimeout, Elapsed: time.Second, Err: errors.New("silent for 2s")}),
			`redlock: acquire "jobs": no quorum: 0 votes, 2 of 3 needed, context deadline exceeded (a:1: unreachable: dial tcp: connection refused; b:1: timeout: silent for 2s)`},
		{&NodeError{Node: "10.0.0.1:6379", Outcome: OutcomeUnreachable, Err: &net.OpError{
			Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 6379},
			Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}},
			"10.0.0.1:6379: unreachable: dial: connect: connection refused"},
		{q("extend", ErrLost, nil, &NodeError{Node: "a:1", Outcome: OutcomeGone}),
			`redlock: extend "jobs": lock lost: the nodes do not have it any more: 0 votes, 2 of 3 needed (a:1: gone)`},
		{q("release", ErrNoQuorum, nil), `redlock: release "jobs": no quorum: 0 votes, 2 of 3 needed`},
		{errExpired, "redlock: lock lost: validity ended"},
		{errShut, "redlock: closed: lock lost"},
		{errors.New(Outcome(200).String()), "Status(200)"},
	} {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}

// TestQuorumErrorUnwraps: errors.Is and errors.As find in a QuorumError its kind, its cause and the error of each
// node.
func TestQuorumErrorUnwraps(t *testing.T) {
	e := &QuorumError{Kind: ErrHeld, Cause: context.Canceled}
	e.note(&NodeError{Node: "a:1", Outcome: OutcomeUnreachable, Err: io.EOF})
	e.note(&NodeError{Node: "b:1", Outcome: OutcomeHeld})
	var err error = fmt.Errorf("job 7: %w", e)
	for _, target := range []error{ErrHeld, context.Canceled, io.EOF} {
		if !errors.Is(err, target) {
			t.Errorf("is not %v", target)
		}
	}
	if errors.Is(err, ErrNoQuorum) || errors.Is(err, ErrLost) {
		t.Error("is more than one sentinel")
	}
	var node *NodeError
	if !errors.As(err, &node) || node.Node != "a:1" {
		t.Errorf("as NodeError: %v", node)
	}
	var list *multierror.Error
	if !errors.As(err, &list) || len(list.Errors) != 2 {
		t.Errorf("as *multierror.Error: %v", list)
	}
	if bare := (&QuorumError{Kind: ErrLost}).Unwrap(); len(bare) != 1 {
		t.Errorf("without nodes it unwraps to %v", bare)
	}
}

// TestEndedHasTheCauseOfTheContext: the error of a context that has ended says that it has ended, and why, if its
// owner said so.
func TestEndedHasTheCauseOfTheContext(t *testing.T) {
	errShutdown := errors.New("shutting down")
	ctx, cancel := context.WithCancelCause(t.Context())
	if err := ended(ctx); err != nil {
		t.Error(err)
	}
	cancel(errShutdown)
	if err := ended(ctx); !errors.Is(err, context.Canceled) || !errors.Is(err, errShutdown) {
		t.Error(err)
	}
	plain, stop := context.WithCancel(t.Context())
	stop()
	if err := ended(plain); err != context.Canceled {
		t.Error(err)
	}
}

// TestRetryAfter: it is when a quorum could grant, and not when one node could, or all.
func TestRetryAfter(t *testing.T) {
	held := func(d time.Duration) *NodeError { return &NodeError{Outcome: OutcomeHeld, TTL: d} }
	other := func(o Outcome, d time.Duration) *NodeError { return &NodeError{Outcome: o, TTL: d} }
	const s = time.Second
	for _, tt := range []struct {
		what    string
		n, need int
		kind    error
		nodes   []*NodeError
		want    time.Duration
	}{
		{"all hold it", 5, 3, ErrHeld, []*NodeError{held(5 * s), held(1 * s), held(9 * s), held(2 * s), held(7 * s)}, 5 * s},
		{"two grant it", 5, 3, ErrHeld, []*NodeError{held(5 * s), held(4 * s), held(9 * s)}, 4 * s},
		{"the rest was not asked", 5, 3, ErrHeld, []*NodeError{held(5 * s), held(4 * s), held(9 * s), held(6 * s)}, 5 * s},
		{"one is down", 3, 2, ErrHeld, []*NodeError{held(5 * s), held(4 * s), other(OutcomeUnreachable, 0)}, 5 * s},
		{"a waiter comes first", 3, 2, ErrHeld, []*NodeError{other(OutcomeReserved, 2*s), other(OutcomeReserved, 3*s), other(OutcomeReserved, s)}, 2 * s},
		{"nobody has a quorum, and one node is free", 3, 2, ErrHeld, []*NodeError{held(5 * s), held(4 * s)}, 4 * s},
		{"quarantines", 3, 2, ErrNoQuorum, []*NodeError{other(OutcomeQuarantined, 8*s), other(OutcomeQuarantined, 6*s), other(OutcomeTimeout, 0)}, 8 * s},
		{"too few answer", 3, 2, ErrNoQuorum, []*NodeError{other(OutcomeUnreachable, 0), other(OutcomeTimeout, 0)}, retryUnknown},
		{"a key of another type", 3, 2, ErrNoQuorum, []*NodeError{other(OutcomeNotALock, 0), other(OutcomeNotALock, 0)}, retryUnknown},
		{"late requests", 3, 2, ErrNoQuorum, []*NodeError{other(OutcomeLate, 0), other(OutcomeLate, 0)}, 0},
		{"lost", 3, 2, ErrLost, []*NodeError{other(OutcomeGone, 0), other(OutcomeGone, 0)}, 0},
	} {
		e := &QuorumError{N: tt.n, Need: tt.need, Kind: tt.kind}
		for _, n := range tt.nodes {
			e.note(n)
		}
		if got := e.RetryAfter(); got != tt.want {
			t.Errorf("%s: after %v, want %v", tt.what, got, tt.want)
		}
	}
}

// TestLossUnwraps: a lock whose validity has ended after failed renewals is lost, and is not also without
// a quorum; the answers of the last renewal are there, by node.
func TestLossUnwraps(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(3)
		lk := ms.locker(t, nil)
		l := acquired(t, lk, "a", AutoRenew())
		ctx := l.Context(t.Context())
		ms[0].kill()
		ms[1].kill()
		<-ctx.Done()
		err := context.Cause(ctx)
		if !errors.Is(err, ErrLost) || !errors.Is(err, errExpired) || errors.Is(err, ErrNoQuorum) || errors.Is(err, ErrHeld) {
			t.Errorf("got %v", err)
		}
		q := wantQuorumError(t, err, ErrLost)
		if nodes := q.Nodes(); len(nodes) != 2 || nodes[0].Node != "node0" || nodes[1].Outcome != OutcomeUnreachable {
			t.Errorf("the nodes are %v", nodes)
		}
		if again := l.Extend(t.Context()); again != err {
			t.Errorf("Extend gives %v", again)
		}
	})
}

// FuzzReply: what a server says to a step is one of the replies that the headers of the
// scripts name, and is taken for that, or it is Failed. And whatever it says, the wait for
// the next attempt is neither none nor longer than a heartbeat.
//
// The form has a letter for each element of a reply: a number, a string, a list of
// strings, or nil. One that begins with = is no list, but its first element alone.
func FuzzReply(f *testing.F) {
	for i, form := range []string{"=n", "n", "sn", "nn", "nsn", "nsnn", "nsnnn", "ns", "snssnll", "", "=0", "0n", "lss"} {
		for step := range byte(wire.Inspect) + 1 {
			f.Add(step, form, int64(i)-1, int64(1.8e15), "p.1 1800000000100 x me|1.7e15|c|1800000000200")
		}
	}
	f.Add(byte(wire.Acquire), "nsn", int64(1e13), int64(1.8e15), "a key that stays for longer than durations last")
	f.Add(byte(wire.Acquire), "nsnn", int64(-1), int64(1.8e15), "p.1")
	f.Add(byte(wire.Inspect), "snssnll", int64(0), int64(0), "a|9999999999999|b|NaN|c|-Inf||")

	f.Fuzz(func(t *testing.T, step byte, form string, first, other int64, words string) {
		s := wire.Op(step) % (wire.Inspect + 1)
		form, bare := strings.CutPrefix(form, "=")
		v := make([]any, 0, len(form))
		said := strings.Split(words, "|")
		for i := range len(form) {
			var element any
			switch form[i] {
			case 'n':
				element = other
				if !strings.Contains(form[:i], "n") {
					element = first
				}
			case 's':
				element = said[i%len(said)]
			case 'l':
				list := make([]any, len(said))
				for i := range said {
					list[i] = said[i]
				}
				element = list
			}
			v = append(v, element)
		}
		var value any = v
		if bare && len(v) > 0 {
			form = "=" + form[:1]
			value = v[0]
		}

		r := wire.Parse(s, value, nil)
		if want := meant(s, form, first); r.Status != want {
			t.Fatalf("%v: %v is taken for %v, not %v", s, value, r.Status, want)
		}
		if (r.Err == nil) != (r.Status == wire.Granted || r.Status == wire.Held || r.Status == wire.Reserved || r.Status == wire.Expired || r.Status == wire.Stolen) {
			t.Errorf("%v: %v is %v, and the error %v", s, value, r.Status, r.Err)
		}
		if r.Fence != wire.AsProposed && (r.Fence < 0 || r.Fence >= wire.MaxFence) && s == wire.Acquire && r.Status == wire.Granted {
			t.Errorf("%v: the fence is %d", value, r.Fence)
		}
		if o := r.Status; (o == wire.Held || o == wire.Reserved || o == wire.Stolen) && (r.TTL < 0 || r.TTL < time.Duration(min(first, 1e9))*time.Millisecond) {
			t.Errorf("%v: %d ms are %v", value, first, r.TTL)
		}
		for _, h := range r.Holders {
			if h.TTL < 0 || h.Mode == 0 {
				t.Errorf("%v: holder %+v", value, h)
			}
		}

		e := &QuorumError{Op: s.String(), N: 1, Need: 1, Kind: ErrHeld}
		e.note(&NodeError{Outcome: Outcome(r.Status), Holder: r.Holder, TTL: r.TTL, Err: r.Err, slot: r.Slot})
		refusal := e.refusal()
		if d := refusal.RetryIn(0, time.Second, sim.Chance{}); d < time.Millisecond || d > waitlist.Heartbeat(time.Second) {
			t.Errorf("%v: the next attempt is in %v", value, d)
		}
		_ = e.Error()
	})
}

// meant is what the headers of the scripts say that a reply of this form means.
func meant(s wire.Op, form string, first int64) wire.Status {
	held := wire.Held
	switch {
	case s == wire.Acquire && form == "=n":
		return wire.Granted
	case form == "=n" && first == 0:
		return wire.Expired
	case form == "=n":
		return wire.Granted
	case s == wire.Inspect && form == "snssnll":
		return wire.Granted
	case s == wire.Acquire && form == "ns":
		return wire.Late
	case s == wire.Acquire && form == "sn":
		return wire.Quarantined
	case s == wire.Acquire && form == "nn" && first >= 0 && first < wire.MaxFence:
		return wire.Granted
	case s == wire.Acquire && len(form) == 4 && form[:3] == "nsn": // the fourth is there to be the fourth
		return wire.Reserved
	case s == wire.Acquire && (form == "nsn" || len(form) == 5 && form[:3] == "nsn" && form[4] == 'n'):
	case s != wire.Acquire && form == "ns":
		held = wire.Stolen
	default:
		return wire.Failed
	}
	if first < 0 {
		return wire.Foreign
	}
	return held
}

// TestNodeDeadlines: an error is that of a context only if the caller's has ended.
func TestNodeDeadlines(t *testing.T) {
	for _, err := range []error{context.DeadlineExceeded, fmt.Errorf("reading: %w", context.Canceled), &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}} {
		e := &QuorumError{Kind: ErrNoQuorum}
		e.note(&NodeError{Node: "a", Outcome: OutcomeTimeout, Err: err})
		if errors.Is(e, context.DeadlineExceeded) || errors.Is(e, context.Canceled) {
			t.Errorf("%v is a context's error", e)
		}
		if e.Cause = context.Canceled; !errors.Is(e, context.Canceled) || errors.Is(e, context.DeadlineExceeded) {
			t.Errorf("%v is not the caller's own", e)
		}
		if why := (*NodeError)(nil); !errors.As(e, &why) || why.Err != err {
			t.Errorf("%v does not have the node's error", e)
		}
	}
	e := &QuorumError{Kind: ErrNoQuorum}
	if e.note(&NodeError{Node: "a", Err: io.EOF}); !errors.Is(e, io.EOF) {
		t.Errorf("%v hides the node's error", e)
	}
}

func optionTexts(_ *testing.T, g *texts) {
	for _, o := range []struct {
		what string
		opts Options
	}{
		{"a TTL that is none", Options{TTL: -time.Second}},
		{"a TTL that is too long", Options{TTL: longestTTL + time.Millisecond}},
		{"a TTL finer than Redis counts", Options{TTL: time.Second + time.Microsecond}},
		{"MaxTTL below TTL", Options{TTL: 10 * time.Second, MaxTTL: time.Second}},
		{"Drift below zero", Options{Drift: -time.Second}},
		{"Drift as long as TTL", Options{TTL: time.Second, Drift: time.Second}},
		{"NodeTimeout below zero", Options{NodeTimeout: -time.Second}},
		{"NodeTimeout as long as TTL", Options{TTL: time.Second, NodeTimeout: time.Second}},
		{"a Quarantine that is shorter than a lock", Options{Quarantine: time.Second}},
		{"MaxNodeSkew beyond what the Quarantine leaves", Options{MaxNodeSkew: time.Minute}},
		{"a Quorum that is no majority", Options{Quorum: 1}},
		{"a Quorum above the number of nodes", Options{Quorum: 4}},
		{"a Prefix that is too long", Options{Prefix: strings.Repeat("p", MaxName)}},
		{"an Owner that is too long", Options{Owner: strings.Repeat("o", MaxOwner+1)}},
		{"several at once", Options{Drift: -time.Second, Quorum: 4}},
	} {
		_, err := o.opts.withDefaults(3)
		g.say(o.what, err)
	}
}

// A mocked client sends nothing.
func mockTexts(_ *testing.T, g *texts) {
	mock := redis.NewClient(&redis.Options{Addr: "10.0.0.1:6379", MaxRetries: -2})
	defer mock.Close()
	_, err := New([]*redis.Client{mock}, nil)
	g.say("a client of redismock", err)
}

// connectionTexts are what keeps a client from a server, with what to do about it.
func connectionTexts(t *testing.T, g *texts) {
	certificate := &x509.Certificate{DNSNames: []string{"other.example"}, NotAfter: time.Now()}
	for _, c := range []struct {
		when string
		err  error
	}{
		{"a wrong password", resp.Error("WRONGPASS invalid username-password pair or user is disabled.")},
		{"no password", resp.Error("NOAUTH HELLO must be called with the client already authenticated.")},
		{"a user who may not", resp.Error("NOPERM User locks has no permissions to run the 'evalsha' command")},
		{"too many clients", resp.Error("ERR max number of clients reached")},
		{"protected mode", resp.Error("DENIED Redis is running in protected mode because no password is set for the default user.")},
		{"an unknown CA", x509.UnknownAuthorityError{}},
		{"a certificate for another name", x509.HostnameError{Certificate: certificate, Host: "a.example"}},
		{"an expired certificate", x509.CertificateInvalidError{Cert: certificate, Reason: x509.Expired, Detail: "current time 2026-11-27T00:00:00Z is after 2026-11-26T00:00:00Z"}},
		{"TLS at a port without", facts.ErrPlain},
		{"TLS at a port of something else", tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake", RecordHeader: [5]byte{'S', 'S', 'H'}}},
		{"no TLS at a port with TLS", errors.New(`redis: invalid reply: "\x15\x03\x01"`)},
		{"no client certificate", &net.OpError{Op: "remote error", Err: errors.New("tls: certificate required")}},
		{"an unknown name", &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "a.invalid", IsNotFound: true}}},
		{"too many open files", &net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE)}},
		{"no right to the socket", &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EACCES)}},
		{"a connection that ended", io.EOF},
		{"a connection that was reset", &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}},
		{"too many open files on Windows", &net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.Errno(10024))}},
		{"a connection that was reset on Windows", &net.OpError{Op: "read", Err: os.NewSyscallError("wsarecv", syscall.Errno(10054))}},
		{"a connection that was aborted on Windows", &net.OpError{Op: "write", Err: os.NewSyscallError("wsasend", syscall.Errno(10053))}},
		{"nothing listens", &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}},
	} {
		e := nodeError("10.0.0.1:6379", &wire.Reply{Status: wire.Classify(c.err), Err: facts.Explain(c.err)}, 0)
		g.say(c.when, &e)
		if todo := facts.Todo(e.Err); todo != "" {
			g.say("what to do", todo)
		}
		if facts.Lasting(e.Err) {
			g.say("whether waiting helps", "no")
		}
	}
	g.say("the cause of TLS at a port without", facts.ErrPlain)
	nodes := redistest.NewBubble(t, 1)
	for when, provider := range map[string]func(context.Context) (string, string, error){
		"a provider of credentials that has none": func(context.Context) (string, string, error) { return "", "", errors.New("no token") },
	} {
		o := nodes.Options(0)
		o.CredentialsProviderContext = provider
		client := redis.NewClient(o)
		defer client.Close()
		lk, err := New([]*redis.Client{client}, &Options{Quarantine: -1, Hooks: g.hooks(slog.LevelInfo)})
		if err != nil {
			t.Fatal(err)
		}
		g.log(when)
		lk.Close()
	}
	o := nodes.Options(0)
	o.StreamingCredentialsProvider = nothing{}
	client := redis.NewClient(o)
	defer client.Close()
	lk, err := New([]*redis.Client{client}, &Options{Quarantine: -1, Hooks: g.hooks(slog.LevelInfo)})
	if err != nil {
		t.Fatal(err)
	}
	g.log("one that tells of changes, and has nothing to tell")
	lk.Close()
}

// nothing is a provider of credentials without any.
type nothing struct{}

func (nothing) Subscribe(auth.CredentialsListener) (auth.Credentials, auth.UnsubscribeFunc, error) {
	return nil, nil, nil
}

func connectTexts(t *testing.T, g *texts) {
	fail := func(when string, _ *Locker, err error) { g.say(when, err) }
	lk, err := New([]*redis.Client{nil}, nil)
	fail("a nil client", lk, err)
	ring := redis.NewRing(&redis.RingOptions{})
	defer ring.Close()
	lk, err = New([]*redis.Ring{ring}, nil)
	fail("a client of several servers", lk, err)
	lk, err = New[*redis.Client](nil, nil)
	fail("no nodes", lk, err)
	lk, err = Connect([]string{"redis://10.0.0.1:6379", "redis://10.0.0.1:6379"}, nil)
	fail("the same server twice", lk, err)
	for _, url := range []string{"http://10.0.0.1", "redis://:pass/word@10.0.0.1", "redis://10.0.0.1/zero", "unix://", "redis://10.0.0.1?colour=red", "redis://:6379", "redis://::1", "redis://10.0.0.1:99999"} {
		lk, err = Connect([]string{url}, nil)
		fail("the URL "+url, lk, err)
	}
	registry := redisnode.NewRegistry(g.hooks(slog.LevelInfo).Warning)
	run := strings.Repeat("0", 40)
	seven := facts.Facts{"redis_version": "7.2.0", "run_id": run, "role": "master"}
	admit := func(i int, when string, change ...string) {
		about := facts.Facts{}
		for k, v := range seven {
			about[k] = v
		}
		for j := 0; j < len(change); j += 2 {
			if about[change[j]] = change[j+1]; change[j+1] == "" {
				delete(about, change[j])
			}
		}
		if err := registry.Admit(i, fmt.Sprintf("10.0.0.%d:6379", i+1), about); err != nil {
			g.say(when, fmt.Errorf("redlock: node %w", &NodeError{Node: "10.0.0.1:6379", Outcome: OutcomeIneligible, Err: err}))
		}
		if line := g.logged.take(); line != "" {
			g.say(when, strings.TrimSuffix(line, "\n"))
		}
	}
	admit(0, "a replica", "role", "slave", "master_host", "10.0.0.9", "master_port", "6379")
	admit(0, "a node of a cluster", "cluster_enabled", "1")
	admit(0, "a server that evicts", "maxmemory_policy", "allkeys-lru", "maxmemory", "1000000")
	admit(0, "Redis before 7.0", "redis_version", "6.2.14")
	admit(0, "Redis before 7.0 whose scripts are not kept", "redis_version", "6.2.14", "scripts:kept", "false")
	admit(0, "Dragonfly", "dragonfly_version", "df-v1.40.1")
	admit(0, "Garnet", "garnet_version", "1.0.99")
	admit(0, "Kvrocks", "kvrocks_version", "2.9.0")
	admit(0, "a server that keeps scripts", "scripts:kept", "true")
	admit(0, "a server without a run_id", "run_id", "")
	admit(0, "a server that may evict, once it has a limit", "maxmemory_policy", "allkeys-lru", "maxmemory", "0")
	admit(1, "the same server under two addresses")
	admit(1, "a server that does not answer INFO", "run_id", "", "redis_version", "", "scripts:kept", "false")
	registry = redisnode.NewRegistry(g.hooks(slog.LevelInfo).Warning)
	admit(0, "a server that says nothing at all", "run_id", "", "redis_version", "")

	newModels(4).locker(t, &Options{Hooks: g.hooks(slog.LevelInfo)})
	g.log("an even number of nodes")
	lk = newModels(3).locker(t, nil)
	lk.Close()
	_, err = lk.TryAcquire(t.Context(), "jobs")
	g.say("any call after Close", err)
}

func nameTexts(t *testing.T, g *texts) {
	lk := newModels(3).locker(t, &Options{Separator: "/", TTL: time.Second})
	plain := newModels(3).locker(t, &Options{Prefix: "orders:"})
	try := func(lk *Locker, when, name string, options ...AcquireOption) {
		_, err := lk.TryAcquire(t.Context(), name, options...)
		g.say(when, err)
	}
	many := func(n int) (names []string) {
		for i := range n {
			names = append(names, fmt.Sprint("n", i))
		}
		return names
	}
	try(plain, "no name", "")
	try(lk, "an empty path", "")
	try(lk, "a name that is too long", strings.Repeat("n", MaxName+1))
	try(plain, "a name that is too long with its prefix", strings.Repeat("n", MaxName))
	try(lk, "a path that is too deep", strings.Repeat("a/", MaxDepth)+"a")
	try(lk, "a path with an empty part", "a//b")
	try(lk, "a path below a key of the library's", "redlock:set/b")
	try(lk, "a key of the library's", "redlock:marker")
	try(plain, "a name that is a key of the library's with its prefix", "queue")
	try(plain, "a queue's key", "a:queue")
	try(plain, "a slot's key", "a:slot:3")
	try(lk, "a TTL that is none", "a", TTL(0))
	try(lk, "a TTL over MaxTTL", "a", TTL(time.Minute))
	off := newModels(3).locker(t, &Options{TTL: time.Second, MaxTTL: time.Second, Quarantine: -1})
	try(off, "a TTL over MaxTTL, without a quarantine", "a", TTL(time.Minute))
	try(lk, "a TTL that Drift eats", "a", TTL(2*time.Millisecond))
	try(lk, "MaxHold of nothing", "a", MaxHold(0))
	try(lk, "MinHold of nothing", "a", MinHold(0))
	try(lk, "MinHold over MaxHold", "a", MinHold(2*time.Second), MaxHold(time.Second))
	try(lk, "MinHold over MaxTTL", "a", MinHold(time.Minute))
	try(lk, "Wait for less than nothing", "a", Wait(-time.Second))
	try(lk, "an option that is nil", "a", AutoRenew(), nil)
	try(lk, "no slots", "a", Slots(0))
	try(lk, "slots that are shared", "a", Slots(2), Shared())
	try(lk, "slots of several names", "a", Slots(2), Also("b"))
	try(lk, "another name that is none", "a", Also(""))
	try(lk, "too many keys of paths", "a", Also(many(MaxKeys)...))
	try(plain, "too many keys", "a", Also(many(MaxKeys)...))
	_, err := lk.Inspect(t.Context(), "")
	g.say("Inspect without a name", err)
}

func printTexts(t *testing.T, g *texts) {
	lk := newModels(3).locker(t, nil)
	l := acquired(t, lk, "jobs")
	g.say("a Locker", fmt.Sprint(lk))
	g.say("a Lock", fmt.Sprint(l))
	slog.New(slog.NewTextHandler(&g.logged, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})).Info("held", "lock", l)
	g.log("a Lock in a log")
	g.say("a method of a Locker that is nil", (*Locker)(nil).Close())
	g.say("a method of a Lock that is nil", (*Lock)(nil).Release(t.Context()))
	g.say("Options", fmt.Sprint(Options{TTL: time.Minute, Prefix: "app:"}))
}

// replyTexts are what nodes answer that no model does.
func replyTexts(_ *testing.T, g *texts) {
	for _, r := range []struct {
		when  string
		step  wire.Op
		value any
	}{
		{"a reply that no script gives", wire.Acquire, "OK"},
		{"a key without a TTL", wire.Acquire, []any{int64(-1), "", int64(1)}},
		{"a counter that is too large", wire.Acquire, []any{int64(wire.MaxFence), int64(1)}},
		{"a marker that is another one", wire.Acquire, []any{"marker", int64(1)}},
		{"a request that came late", wire.Acquire, []any{int64(1), "marker"}},
	} {
		q := lane.Request{Op: r.step, Claim: new(lane.Claim)}
		q.Read(r.value, nil)
		e := nodeError("10.0.0.1:6379", &q.Reply, 0)
		g.say(r.when, &e)
	}
	for _, r := range []struct {
		when  string
		spoil func(*wire.PlainAnswer)
	}{
		{"to plain commands: it does not say the time", func(p *wire.PlainAnswer) { p.Time = 0 }},
		{"to plain commands: the number did not advance", func(p *wire.PlainAnswer) { p.Advanced = 0 }},
		{"to plain commands: the node's clock is far ahead", func(p *wire.PlainAnswer) { p.Time = time.Second.Microseconds() }},
		{"to plain commands: it was late", func(p *wire.PlainAnswer) { p.Time = 2 * time.Second.Microseconds() }},
		{"to plain commands: the key is gone", func(p *wire.PlainAnswer) { p.Holder = "" }},
		{"to plain commands: there is a queue", func(p *wire.PlainAnswer) { p.Queues = 1 }},
		{"to plain commands: the scripts are gone", func(p *wire.PlainAnswer) { p.Known = 0 }},
	} {
		p := &wire.PlainAnswer{Set: true, Advanced: 1, Holder: "token", Trailer: &wire.Trailer{Known: 1, Time: 1}}
		r.spoil(p)
		reply := p.Read("token", 1, time.Second.Microseconds(), "")
		e := nodeError("10.0.0.1:6379", &reply, 0)
		g.say(r.when, &e)
	}
	e := nodeError("10.0.0.1:6379", &wire.Reply{Status: wire.Unfit, Err: wire.ErrMoved}, 0)
	g.say("an extension by a node whose set has been changed, before it is asked again", &e)
	g.say("the clocks of most nodes seem to be set back at once", vote.OwnClockError(-2*time.Second))
	g.say("the clocks of most nodes seem to be set forward at once", vote.OwnClockError(2*time.Second))
	g.say("a call by another separator than that of the set, before it is made anew", errAgain)
	g.say("an attempt by plain commands that came to nothing, before the next one", errNeedsScript)
	for _, r := range []struct{ when, sent string }{
		{"a server of another protocol", "HTTP/1.1 400 Bad Request\r\n"},
		{"a reply that is too long", "*16\r\n" + strings.Repeat("$1048576\r\n"+strings.Repeat("x", 1<<20)+"\r\n", 16)},
		{"more replies than requests", "+OK\r\n+OK\r\n"},
	} {
		var from resp.Reader
		from.Reset(strings.NewReader(r.sent))
		_, err := from.Reply()
		err = cmp.Or(err, from.Done())
		e := nodeError("10.0.0.1:6379", &wire.Reply{Status: wire.Classify(err), Err: err}, 0)
		g.say(r.when, &e)
	}
}
