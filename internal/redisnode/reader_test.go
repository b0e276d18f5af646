package redisnode

import (
	"bytes"
	"context"
	"io"
	"net"
	"reflect"
	"slices"
	"testing"
	"testing/iotest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/quorumlock/redlock/internal/resp"
)

// TestErrorsForGoRedis: an error that the server sends is one for go-redis.
func TestErrorsForGoRedis(t *testing.T) {
	if err := resp.Error("NOSCRIPT No matching script."); !redis.HasErrorPrefix(err, "NOSCRIPT") {
		t.Errorf("%v is none", err)
	}
}

// FuzzReaderAgainstGoRedis: what a resp.Reader accepts means the same to go-redis, and the Reader takes no
// byte of what follows.
func FuzzReaderAgainstGoRedis(f *testing.F) {
	for _, text := range []string{
		"+OK\r\n", "+\r\n", ":-12\r\n", "$3\r\na\r\n\r\n", "$4\r\na\r\nb\r\n", "$0\r\n\r\n", "$-1\r\n", "*-1\r\n", "*0\r\n",
		"*4\r\n:1\r\n$-1\r\n-ERR no\r\n*2\r\n$1\r\nx\r\n+y\r\n", "*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n", "-NOSCRIPT No matching script.\r\n",
		":1\n", "\r\n", ":\r\n", ":9223372036854775808\r\n", "$-2\r\n", ">2\r\n+a\r\n+b\r\n", "_\r\n", "", "*2\r\n:1\r\n", "$5\r\nabc",
	} {
		f.Add([]byte(text))
		f.Add([]byte(text + "+more\r\n"))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var r resp.Reader
		from := bytes.NewReader(data)
		r.Reset(iotest.OneByteReader(from)) // what the Reader has not taken is still there
		value, err := r.Reply()
		if said, is := err.(resp.Error); is {
			value, err = said, nil
		}
		if err != nil {
			return
		}
		data = data[:len(data)-from.Len()]
		want, err := goRedis(data)
		if list, ok := value.([]any); ok && hasError(list) {
			return // go-redis has types of its own for them, and does not take some in a list
		}
		switch said := value.(type) {
		case resp.Error:
			want, err = resp.Error(err.Error()), nil
			value = said
		case nil:
			if err == redis.Nil {
				err = nil
			}
		}
		if err != nil || !reflect.DeepEqual(value, want) {
			t.Errorf("%q is %#v, and for go-redis %#v, %v", data, value, want, err)
		}
	})
}

func hasError(list []any) bool {
	return slices.ContainsFunc(list, func(v any) bool {
		_, is := v.(resp.Error)
		inner, _ := v.([]any)
		return is || hasError(inner)
	})
}

// goRedis reads a reply by go-redis.
func goRedis(reply []byte) (any, error) {
	client := redis.NewClient(&redis.Options{
		Protocol: 2, DisableIdentity: true, MaxRetries: -1, DialerRetries: 1, PoolSize: 1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			return &canned{replies: [][]byte{[]byte("-ERR no HELLO\r\n"), reply}}, nil
		},
	})
	defer client.Close()
	return client.Do(context.Background(), "any").Result()
}

// A canned connection answers each write with the next reply.
type canned struct {
	net.Conn // nil
	replies  [][]byte
	unread   []byte
}

func (c *canned) Write(p []byte) (int, error) {
	if len(c.replies) > 0 {
		c.unread, c.replies = c.replies[0], c.replies[1:]
	}
	return len(p), nil
}

func (c *canned) Read(p []byte) (int, error) {
	if len(c.unread) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.unread)
	c.unread = c.unread[n:]
	return n, nil
}

func (c *canned) Close() error                     { return nil }
func (c *canned) SetDeadline(time.Time) error      { return nil }
func (c *canned) SetReadDeadline(time.Time) error  { return nil }
func (c *canned) SetWriteDeadline(time.Time) error { return nil }
func (c *canned) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
