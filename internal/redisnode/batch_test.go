package redisnode

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/resp"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/wire"
	"github.com/redis/go-redis/v9"
)

func request(op wire.Op) *lane.Request {
	return &lane.Request{Op: op, Number: 1 << 50, Latest: 1 << 50, Mark: "mark", Claim: &lane.Claim{Keys: []string{"a", "b", ""}, Modes: "xsi", Token: "token", Millis: 10_000}}
}

func batchOf(n int) (batch []*lane.Request) {
	for range n {
		batch = append(batch, request(wire.Release))
	}
	return batch
}

// connected gives a Server that has a connection, and the other end of it.
func connected(t *testing.T, patience time.Duration) (*Server, net.Conn) {
	near, far := net.Pipe()
	t.Cleanup(func() { near.Close(); far.Close() })
	return over(near, patience), far
}

func over(conn net.Conn, patience time.Duration) *Server {
	s := &Server{options: &redis.Options{ReadTimeout: patience, WriteTimeout: patience}, last: time.Now()}
	s.scripts.Store(&hashes{acquire: "hash of acquire", marker: script.Marker})
	s.keep(&conn)
	s.receive(&conn)
	return s
}

// exec sends a batch, and reads the replies.
func exec(s *Server, batch []*lane.Request) error {
	s.Encode(batch)
	first := s.Send()
	rest, err := s.Receive(batch, 0)
	err = cmp.Or(first, err)
	for _, q := range rest {
		q.Read(nil, err)
	}
	return err
}

// answer reads what has been sent, and answers.
func answer(far net.Conn, text string) {
	buf := make([]byte, 64<<10)
	_, _ = far.Read(buf)
	_, _ = io.WriteString(far, text)
}

// TestWrite: what is written for each step is one whole command, and nothing is allocated for it.
func TestWrite(t *testing.T) {
	s := over(nil, 0)
	for op := wire.Op(0); int(op) < wire.Ops; op++ {
		q := request(op)
		if op == wire.Yield {
			q.Op, q.Claim.KeepPlace = wire.Release, true
		}
		write := func() {
			if s.out.Reset(); op == wire.Plain {
				writePlain(&s.out, q)
			} else {
				s.write(s.scripts.Load(), q, op)
			}
		}
		if n := testing.AllocsPerRun(10, write); n != 0 {
			t.Errorf("%v: %v allocations", op, n)
		}
		var r resp.Reader // a command has the form of a reply
		r.Reset(bytes.NewReader(s.out.Bytes()))
		commands, name := 1, "evalsha script"
		if op == wire.Plain {
			commands, name = 4, "set zadd getrange exists"
		}
		for range commands {
			command, err := r.Reply()
			if err != nil || !strings.Contains(name, command.([]any)[0].(string)) {
				t.Errorf("%v: %v, %v", op, command, err)
			}
		}
		if err := r.Done(); err != nil {
			t.Errorf("%v: %v", op, err)
		}
	}
}

// TestTrailerAllocates: the marker that each write with an acquire or an extension reads needs no memory of its
// own, whatever was sent in between, and neither does looking at it.
func TestTrailerAllocates(t *testing.T) {
	const marker = "1:0123456789abcdef0123456789abcdef01234567:1700000000000:1700000000000:0:2"
	whole := "*1\r\n$" + strconv.Itoa(len(marker)) + "\r\n" + marker + "\r\n*2\r\n$10\r\n1700000000\r\n$6\r\n123456\r\n*1\r\n:1\r\n"
	s := over(nil, 0)
	from := strings.NewReader("")
	s.in.Reset(from)
	if n := testing.AllocsPerRun(100, func() {
		for _, tt := range []struct {
			text string
			has  int
		}{{whole, wholeTrailer}, {"", noTrailer}} {
			from.Reset(tt.text)
			if err := readTrailer(&s.in, tt.has, &s.said, &s.marker); err != nil {
				t.Error(err)
			}
			mark, ok := wire.ParseMarker(s.said.Marker)
			if is := tt.has == wholeTrailer; ok != is || is && mark.Epoch != 2 {
				t.Errorf("%q has the marker %q", tt.text, s.said.Marker)
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestExecFails: the requests whose replies have been read keep them, the others get the error, and
// what arrives afterwards is the reply to none.
func TestExecFails(t *testing.T) {
	for _, tt := range []struct {
		name, sent string
		replies    int // that count
		status     wire.Status
		text       string
	}{
		{"half a batch", ":1\r\n-NOPERM no\r\n:", 2, wire.Timeout, "timeout"},
		{"silence", "", 0, wire.Timeout, "timeout"},
		{"another protocol", ":1\r\nHTTP/1.1 400\r\n", 1, wire.Unreachable, `it sent "HTTP/1.1 400"`},
		{"a reply too many", ":1\r\n-NOPERM no\r\n:1\r\n:0\r\n", 3, wire.Unreachable, `it sent ":0\r\n", which nothing`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, far := connected(t, time.Second)
				go answer(far, tt.sent)
				batch := batchOf(3)
				err := exec(s, batch)
				if err == nil || wire.Classify(err) != tt.status || !strings.Contains(err.Error(), tt.text) {
					t.Errorf("the batch: %v", err)
				}
				want := append([]wire.Status{wire.Granted, wire.Denied, wire.Granted}[:tt.replies], tt.status, tt.status, tt.status)
				for i, q := range batch {
					if q.Reply.Status != want[i] {
						t.Errorf("request %d: %v, %v, want %v", i, q.Reply.Status, q.Reply.Err, want[i])
					}
				}
				later := batchOf(1)
				if err := exec(s, later); !errors.Is(err, net.ErrClosed) || later[0].Reply.Status != wire.Unreachable {
					t.Errorf("the batch after it: %v, %v", err, later[0].Reply)
				}
				if _, err := io.WriteString(far, ":1\r\n"); err == nil {
					t.Error("the connection is open")
				}
			})
		})
	}
}

// TestNewConnection: nothing of an old connection is read as the reply over a new one.
func TestNewConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, far := connected(t, time.Second)
		go answer(far, ":1\r\n:1\r\n:1")
		if err := exec(s, batchOf(1)); err == nil {
			t.Error("more was sent than asked for")
		}
		next, far := net.Pipe()
		s.keep(&next)
		defer s.keep(nil)
		if err := s.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		go answer(far, ":0\r\n")
		batch := batchOf(1)
		if err := exec(s, batch); err != nil || batch[0].Reply.Status != wire.Expired {
			t.Error(err, batch[0].Reply)
		}
	})
}

// TestInterrupt: Interrupt ends a read that waits, and a write.
func TestInterrupt(t *testing.T) {
	for _, reads := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s, far := connected(t, time.Hour)
			if reads {
				go answer(far, ":1\r\n")
			}
			time.AfterFunc(time.Second, s.Interrupt)
			batch, begin := batchOf(2), time.Now()
			if err := exec(s, batch); wire.Classify(err) != wire.Unreachable || time.Since(begin) != time.Second {
				t.Errorf("%v after %v", err, time.Since(begin))
			}
			if got := batch[0].Reply.Status == wire.Granted; got != reads {
				t.Error(batch[0].Reply)
			}
		})
	}
}

// TestDialerThatIgnoresItsContext: a connection is given up in time, and when it comes later it is closed.
func TestDialerThatIgnoresItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		s := &Server{options: &redis.Options{DialTimeout: time.Second, Dialer: func(context.Context, string, string) (net.Conn, error) {
			time.Sleep(5 * time.Second)
			return near, nil
		}}}
		begin := time.Now()
		if err := s.open(t.Context(), nil); wire.Classify(err) != wire.Timeout || time.Since(begin) != time.Second {
			t.Errorf("%v after %v, want a timeout after 1s", err, time.Since(begin))
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, cancel)
		begin = time.Now()
		if err := s.open(ctx, nil); !errors.Is(err, context.Canceled) || time.Since(begin) != time.Millisecond {
			t.Errorf("%v after %v, want %v after 1ms", err, time.Since(begin), context.Canceled)
		}
		if _, err := far.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("the connection is open: %v", err)
		}
		time.Sleep(5 * time.Second)
	})
}
