package pgtest_test

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/testbed/pgtest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// TestStart: the server lets the user postgres into the database postgres without a password. When the test ends, the
// server has stopped and its directory is gone.
func TestStart(t *testing.T) {
	need.Full(t)
	leaks.Check(t)
	if err := pgtest.Available(t); err != nil {
		need.Skip(t, need.WithPostgres, err)
	}
	var dir string
	var server *os.Process
	if !t.Run("up", func(t *testing.T) {
		dir = pgtest.Start(t)
		text, err := os.ReadFile(filepath.Join(dir, "data", "postmaster.pid"))
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(string(text), "\n")
		pid, err := strconv.Atoi(first)
		if err != nil {
			t.Fatal(err)
		}
		if server, err = os.FindProcess(pid); err != nil {
			t.Fatal(err)
		}
		if err := server.Signal(syscall.Signal(0)); err != nil {
			t.Fatalf("process %d of the server: %v", pid, err)
		}
		login(t, dir, "postgres", "postgres")
	}) {
		return
	}
	if err := server.Signal(syscall.Signal(0)); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("the server runs after the test: %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is there after the test: %v", dir, err)
	}
}

// login connects to the server as a program does. It fails the test unless the server says that it is ready for queries.
func login(t *testing.T, dir, user, database string) {
	t.Helper()
	conn, err := net.Dial("unix", filepath.Join(dir, ".s.PGSQL.5432"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))

	// The first message has its length, the version of the protocol, and parameters.
	const version = 3 << 16
	parameters := "user\x00" + user + "\x00database\x00" + database + "\x00\x00"
	hello := binary.BigEndian.AppendUint32(nil, uint32(8+len(parameters)))
	hello = append(binary.BigEndian.AppendUint32(hello, version), parameters...)
	if _, err := conn.Write(hello); err != nil {
		t.Fatal(err)
	}
	for {
		var head [5]byte // the kind of a message, and its length without the kind
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			t.Fatal(err)
		}
		body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
		if _, err := io.ReadFull(conn, body); err != nil {
			t.Fatal(err)
		}
		switch kind := head[0]; {
		case kind == 'Z': // it is ready
			return
		case kind == 'E', kind == 'R' && binary.BigEndian.Uint32(body) != 0: // an error, or it wants a password
			t.Fatalf("the server says %c %q", kind, body)
		}
	}
}
