package sockerr_test

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/quorumlock/redlock/internal/sockerr"
)

// TestIs: the errors of this system, and those of Windows, are known by the constants of package syscall, and no others.
func TestIs(t *testing.T) {
	wrapped := func(number syscall.Errno) error {
		return &net.OpError{Op: "read", Err: os.NewSyscallError("read", number)}
	}
	for _, c := range []struct {
		err    error
		number syscall.Errno
		want   bool
	}{
		{wrapped(syscall.ECONNRESET), syscall.ECONNRESET, true},
		{wrapped(10054), syscall.ECONNRESET, true},
		{wrapped(10061), syscall.ECONNRESET, false},
		{wrapped(syscall.EPIPE), syscall.EPIPE, true},
		{wrapped(10054), syscall.EPIPE, false},
		{errors.New("reset"), syscall.ECONNRESET, false},
		{nil, syscall.ECONNRESET, false},
	} {
		if got := sockerr.Is(c.err, c.number); got != c.want {
			t.Errorf("%v is %v: %t", c.err, c.number, got)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := net.Listen("tcp", l.Addr().String()); !sockerr.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a port that is taken: %v", err)
	}
}
