package redisproc

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

//go:embed clockshim.c
var shimSource []byte

// shim is clockshim.c, compiled. It is kept in memory, so that it need not be removed when the process
// ends. Each server gets a copy.
var shim = sync.OnceValues(compileShim)

func compileShim() ([]byte, error) {
	const compiler = "gcc"
	if _, err := exec.LookPath(compiler); err != nil {
		return nil, fmt.Errorf("no %s in PATH (Debian and Ubuntu: apt-get install gcc libc6-dev): %w", compiler, err)
	}
	dir, err := os.MkdirTemp("", "redisproc")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	library := filepath.Join(dir, "clockshim.so")
	cmd := exec.Command(compiler, "-O2", "-shared", "-fPIC", "-o", library, "-x", "c", "-")
	cmd.Stdin = bytes.NewReader(shimSource)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compiling clockshim.c: %w: %s", err, bytes.TrimSpace(out))
	}
	return os.ReadFile(library)
}

// A clock is the offset of one server's wall clock from the machine's. Its files, the offset and the
// library that adds it, have a directory of their own: a directory that the caller chose may have been
// another server's before, which might still read its offset there.
type clock struct {
	dir    string
	memory []byte  // the file, mapped
	shared *shared // in memory; nil when closed
}

// shared is the content of the file. It is mapped memory, since the server might see a write to the
// file half done.
type shared struct {
	offset atomic.Int64 // in nanoseconds; written by this process
	pid    atomic.Int64 // of the process that has mapped it; written by the server
	turn   atomic.Int64 // odd while the offset and the next two change together
	rate   atomic.Int64 // how many nanoseconds the clock gains in a second
	since  atomic.Int64 // from when on, by CLOCK_MONOTONIC
}

func newClock() (*clock, error) {
	library, err := shim()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "redisproc")
	if err != nil {
		return nil, err
	}
	c := &clock{dir: dir}
	err = os.WriteFile(c.library(), library, 0o755)
	if err == nil {
		err = c.share()
	}
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *clock) library() string { return filepath.Join(c.dir, "clockshim.so") }
func (c *clock) file() string    { return filepath.Join(c.dir, "clock") }

// share makes the file, with offset 0, and maps it.
func (c *clock) share() error {
	const size = int(unsafe.Sizeof(shared{}))
	if err := os.WriteFile(c.file(), make([]byte, size), 0o644); err != nil {
		return err
	}
	f, err := os.OpenFile(c.file(), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close() // the mapping stays
	c.memory, err = syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return os.NewSyscallError("mmap", err)
	}
	c.shared = (*shared)(unsafe.Pointer(unsafe.SliceData(c.memory)))
	return nil
}

// env is what to add to the environment of a server that has this clock.
func (c *clock) env() []string {
	return []string{"LD_PRELOAD=" + c.library(), "REDISPROC_CLOCK=" + c.file()}
}

// step takes effect on the next reading: the server has the same memory.
func (c *clock) step(d time.Duration) error {
	if c.shared == nil {
		return errors.New("the server is stopped")
	}
	c.shared.offset.Add(int64(d))
	return nil
}

// slew makes the clock gain so much in a second. What it has gained before is part of the offset from then on.
func (c *clock) slew(gain time.Duration) error {
	if c.shared == nil {
		return errors.New("the server is stopped")
	}
	var ts syscall.Timespec
	const monotonic = 1 // CLOCK_MONOTONIC
	if _, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, monotonic, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		return os.NewSyscallError("clock_gettime", errno)
	}
	c.shared.turn.Add(1)
	gained := (ts.Nano() - c.shared.since.Load()) / 1000 * c.shared.rate.Load() / 1_000_000
	c.shared.offset.Add(gained)
	c.shared.since.Store(ts.Nano())
	c.shared.rate.Store(int64(gain))
	c.shared.turn.Add(1)
	return nil
}

// readBy returns an error unless the process uses this clock. If a library cannot be preloaded,
// perhaps because the program is linked statically, the system reports no failure, and a test that
// steps the clock would pass without any effect.
func (c *clock) readBy(pid int) error {
	if c.shared == nil || c.shared.pid.Load() != int64(pid) {
		return errors.New("redis-server runs without its own clock: clockshim.so was not preloaded, or has not found its file")
	}
	return nil
}

// close can be called twice.
func (c *clock) close() {
	if c.memory != nil {
		_ = syscall.Munmap(c.memory)
	}
	c.memory, c.shared = nil, nil
	_ = os.RemoveAll(c.dir)
}
