package redisproc

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// startWithClock skips the test if what StartWithClock needs is missing, as start does.
func startWithClock(t *testing.T, args ...string) *Server {
	t.Helper()
	need.Servers(t, CanStepClock)
	s, err := StartWithClock("", args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// step returns when the server must have read its clock again. Since 9.1 Valkey reads it once in a
// millisecond, and counts on by the processor's own clock in between
// (https://github.com/valkey-io/valkey/pull/3193). A step of the system's clock is as late there.
func step(t *testing.T, s *Server, d time.Duration) {
	t.Helper()
	if err := s.StepClock(d); err != nil {
		t.Fatal(err)
	}
	for stepped := time.Now(); time.Since(stepped) <= time.Millisecond; {
		runtime.Gosched()
	}
}

// number asks the server for a number.
func number(t *testing.T, s *Server, command string) int64 {
	t.Helper()
	got, err := say(s.Addr, command, 5*time.Second)
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	n, err := strconv.ParseInt(strings.TrimPrefix(got, ":"), 10, 64)
	if err != nil {
		t.Fatalf("%s: %q", command, got)
	}
	return n
}

// wantOffset asks the server for the time, between two readings of the test's own clock.
func wantOffset(t *testing.T, s *Server, offset time.Duration) {
	t.Helper()
	const command = `EVAL "local t=redis.call('TIME') return t[1]*1000000+t[2]" 0`
	before := time.Now().Add(offset).UnixMicro()
	got := number(t, s, command)
	after := time.Now().Add(offset).UnixMicro()
	if got < before || got > after {
		t.Errorf("its time is %d µs, want an offset of %v: between %d and %d", got, offset, before, after)
	}
}

func maps(t *testing.T, s *Server) string {
	t.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(s.Pid()) + "/maps")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestStepClock(t *testing.T) {
	s := startWithClock(t)
	wantOffset(t, s, 0)
	step(t, s, 10*time.Second)
	wantOffset(t, s, 10*time.Second)
	step(t, s, -20*time.Second)
	wantOffset(t, s, -10*time.Second)
	step(t, s, 10*time.Second+time.Millisecond)
	wantOffset(t, s, time.Millisecond)

	other := startWithClock(t)
	wantOffset(t, other, 0)
	step(t, other, -time.Hour)
	wantOffset(t, s, time.Millisecond)
}

func TestStepClockForwardsExpiresKeys(t *testing.T) {
	s := startWithClock(t)
	want(t, s, "SET k v PX 5000", "+OK")
	want(t, s, "SET long v PX 60000", "+OK")
	want(t, s, "EXISTS k", ":1")
	step(t, s, 10*time.Second)
	want(t, s, "EXISTS k", ":0")
	want(t, s, "GET k", "$-1")
	if ms := number(t, s, "PTTL long"); ms > 50_000 || ms < 40_000 {
		t.Errorf("of a minute %d ms are left ten seconds later", ms)
	}
}

func TestStepClockBackKeepsKeys(t *testing.T) {
	s := startWithClock(t)
	// Try again if the test was not scheduled for the 100 ms that the key lives.
	within(t, 10*time.Second, "a key lives on when the clock is set back", func() bool {
		want(t, s, "SET k v PX 100", "+OK")
		step(t, s, -10*time.Second)
		ms := number(t, s, "PTTL k")
		if ms > 10_100 {
			t.Fatalf("%d ms are left", ms)
		}
		return ms > 5_000
	})
}

// A host's clock does not depend on its processes.
func TestClockOutlivesProcess(t *testing.T) {
	s := startWithClock(t, "--appendonly", "yes", "--appendfsync", "always")
	want(t, s, "SET k v PX 60000", "+OK")
	want(t, s, "SET long v PX 600000", "+OK")
	step(t, s, 50*time.Second)
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	wantOffset(t, s, 50*time.Second)
	want(t, s, "EXISTS k", ":1")

	if err := s.Hang(); err != nil {
		t.Fatal(err)
	}
	step(t, s, 20*time.Second)
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	wantOffset(t, s, 70*time.Second)
	want(t, s, "EXISTS k", ":0")

	s.Kill()
	step(t, s, 50*time.Second)
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	wantOffset(t, s, 120*time.Second)
	if ms := number(t, s, "PTTL long"); ms > 480_000 || ms < 400_000 {
		t.Errorf("of ten minutes %d ms are left two minutes later", ms)
	}

	if err := s.Forget(); err != nil {
		t.Fatal(err)
	}
	wantOffset(t, s, 120*time.Second)
	want(t, s, "EXISTS long", ":0")
}

func TestNoClockOfItsOwn(t *testing.T) {
	s := start(t)
	if err := s.StepClock(time.Second); err == nil {
		t.Error("the machine's clock can be stepped")
	}
	if env := s.proc.cmd.Env; !slices.Equal(env, os.Environ()) {
		t.Errorf("its environment is not the test's: %q", env)
	}
	if strings.Contains(maps(t, s), "clockshim") {
		t.Error("it has the shim")
	}
	if !strings.Contains(maps(t, startWithClock(t)), "clockshim") {
		t.Error("the shim is nowhere: this test would not find it")
	}
}

// See clockArgs.
func TestClockWithoutAllocatorThread(t *testing.T) {
	s := startWithClock(t)
	threads, err := filepath.Glob("/proc/" + strconv.Itoa(s.Pid()) + "/task/*/comm")
	if err != nil || len(threads) == 0 {
		t.Fatalf("its threads: %q, %v", threads, err)
	}
	for _, file := range threads {
		name, err := os.ReadFile(file)
		if err != nil || strings.HasPrefix(string(name), "jemalloc") {
			t.Errorf("it has a thread %q, %v", name, err)
		}
	}
}

func TestStopRemovesClock(t *testing.T) {
	dir := t.TempDir()
	startWithClock(t) // or skip
	s, err := StartWithClock(dir)
	if err != nil {
		t.Fatal(err)
	}
	s.Stop()
	s.Stop()
	if _, err := os.Stat(s.clock.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the clock's directory: %v", err)
	}
	if err := s.StepClock(time.Second); err == nil || !strings.Contains(err.Error(), "stopped") {
		t.Errorf("the clock of a stopped server: %v", err)
	}
	// With a directory of the caller's it could start, but has lost its clock.
	if err := s.Restart(); err == nil || s.Running() {
		t.Errorf("restart: %v", err)
	}
}

func TestClockIsNotTaken(t *testing.T) {
	s := startWithClock(t)
	step(t, s, time.Hour)
	if err := os.Remove(s.clock.file()); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(); err == nil || !strings.Contains(err.Error(), "without its own clock") {
		t.Errorf("without its file: %v", err)
	}
	if s.Running() {
		t.Error("it runs with another clock")
	}
}

func TestNoCompiler(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := compileShim(); err == nil || !strings.Contains(err.Error(), "apt-get install gcc") {
		t.Errorf("nothing installed: %v", err)
	}
	if err := CanStepClock(); err == nil {
		t.Error("nor is redis-server")
	}
}

// TestSlewClock: a clock that is slewed gains what it should while it is, and keeps that afterwards; it can be stepped
// in between, and go slower.
func TestSlewClock(t *testing.T) {
	s := startWithClock(t)
	slew := func(gain time.Duration) {
		t.Helper()
		if err := s.SlewClock(gain); err != nil {
			t.Fatal(err)
		}
	}
	ahead := func() (least, most time.Duration) {
		const command = `EVAL "local t=redis.call('TIME') return t[1]*1000000+t[2]" 0`
		before := time.Now()
		got := time.UnixMicro(number(t, s, command))
		return time.Until(got) - time.Millisecond, got.Sub(before) + time.Millisecond
	}
	begin := time.Now()
	slew(time.Second) // twice as fast
	within(t, 10*time.Second, "the clock gains", func() bool { least, _ := ahead(); return least > 100*time.Millisecond })
	step(t, s, -time.Hour)
	step(t, s, time.Hour)
	slew(0)
	if _, most := ahead(); most > time.Since(begin)+10*time.Millisecond {
		t.Errorf("in %v it has gained %v", time.Since(begin), most)
	}
	kept, _ := ahead()
	slew(-500 * time.Millisecond)
	within(t, 10*time.Second, "the clock loses", func() bool { _, most := ahead(); return most < kept-50*time.Millisecond })
	slew(0)
	_, most := ahead()
	if least, _ := ahead(); least > most {
		t.Errorf("it runs on: %v after %v", least, most)
	}
}
