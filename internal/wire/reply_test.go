package wire

import (
	"context"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestClassify(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want Status
	}{
		{redisError("LOADING Redis is loading the dataset in memory"), Loading},
		{redisError("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."), Loading},
		{redisError("READONLY You can't write against a read only replica."), ReadOnly},
		{redisError("MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk."), ReadOnly},
		{redisError("OOM command not allowed when used memory > 'maxmemory'."), OutOfMemory},
		{redisError("NOAUTH Authentication required."), Denied},
		{redisError("WRONGPASS invalid username-password pair or user is disabled."), Denied},
		{redisError("NOPERM User default has no permissions to run the 'evalsha' command"), Denied},
		{redisError("ERR max number of clients reached"), Busy},
		{redisError("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."), Busy},
		{redisError("WRONGTYPE Operation against a key holding the wrong kind of value"), Foreign},
		{redisError("ERR something else"), Failed},
		{os.ErrDeadlineExceeded, Timeout},
		{&net.OpError{Op: "dial", Err: context.DeadlineExceeded}, Timeout},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, Unreachable},
		{io.EOF, Unreachable},
		{UnfitError("it is a slave"), Unfit},
	} {
		if got := Classify(tt.err); got != tt.want {
			t.Errorf("%v: %v, want %v", tt.err, got, tt.want)
		}
	}
}

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		step  Op
		value any
		want  Status
	}{
		{Acquire, []any{int64(7), int64(1e15)}, Granted},
		{Acquire, []any{int64(MaxFence) + 1, int64(1e15)}, Failed},
		{Acquire, []any{"", int64(1e15)}, Quarantined},
		{Acquire, int64(1e15), Granted},
		{Acquire, []any{int64(1e15), "mark"}, Late},
		{Acquire, []any{int64(1e15)}, Failed},
		{Acquire, []any{int64(1500), "them", int64(1e15)}, Held},
		{Acquire, []any{int64(-1), "them", int64(1e15)}, Foreign},
		{Acquire, []any{int64(1500), "p.1", int64(1e15), int64(0)}, Reserved},
		{Acquire, []any{"them", "them"}, Failed},
		{Raise, int64(1), Granted},
		{Raise, int64(0), Expired},
		{Extend, int64(1e15), Granted},
		{Extend, int64(0), Expired},
		{Extend, []any{int64(1500), "them"}, Stolen},
		{Release, []any{int64(1500), "them"}, Stolen},
		{Release, int64(0), Expired},
		{Release, "OK", Failed},
		{Inspect, []any{"them", int64(1500), "7", "", int64(1e15), []any{"p.1 17 x me", "16"}, []any{}}, Granted},
		{Inspect, []any{"", int64(-2), "", "", int64(1e15), []any{}, []any{"them", "1800000000000"}}, Granted},
		{Inspect, []any{"", int64(-2), "", "", int64(1e15), []any{}}, Failed},
		{Acquire, []any{int64(1500), "them", int64(1e15), int64(0), int64(2)}, Held},
		{Inspect, []any{"", int64(-2), "", ""}, Failed},
		{Acquire, []any{"1500"}, Failed},
		{Acquire, []any{"1500", "them"}, Failed},
		{Acquire, nil, Failed},
	} {
		got := Parse(tt.step, tt.value, nil)
		if got.Status != tt.want {
			t.Errorf("%v %v: %v, want %v", tt.step, tt.value, got.Status, tt.want)
		}
		if tt.want == Held && (got.Holder != "them" || got.TTL != 1500*time.Millisecond) {
			t.Errorf("held by %q for %v", got.Holder, got.TTL)
		}
	}
}

// TestDeniedIsNotAbsent: after an acquire that ended with an error, the token is released wherever
// the script may have written it before.
func TestDeniedIsNotAbsent(t *testing.T) {
	for text, absent := range map[string]bool{
		"NOPERM User default has no permissions to run the 'evalsha' command":                                                                true,
		"NOPERM this user has no permissions to run the 'evalsha' command or its subcommand":                                                 true,
		"NOPERM No permissions to access a key":                                                                                              true,
		"NOAUTH Authentication required.":                                                                                                    true,
		"LOADING Redis is loading the dataset in memory":                                                                                     true,
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'. script: 4f29, on @user_script:1.":                  true,
		"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.":                                             true,
		"READONLY You can't write against a read only replica. script: 4f29, on @user_script:1.":                                             true,
		"ERR Error running script (call to f_4f29): @user_script:1: @user_script: 1: -READONLY You can't write against a read only replica.": true,
		"OOM command not allowed when used memory > 'maxmemory'. script: 4f29, on @user_script:1.":                                           true,
		"WRONGTYPE a:fence is no number: it cannot be the counter of a":                                                                      true,
		"WRONGTYPE Operation against a key holding the wrong kind of value":                                                                  true,

		"WRONGTYPE Operation against a key holding the wrong kind of value script: 4f29, on @user_script:1.":                                             false,
		"NOPERM ACL failure in script: User default has no permissions to run the 'zrem' command":                                                        false,
		"ERR ACL failure in script: User default has no permissions to run the 'zrem' command script: 4f29, on @user_script:1.":                          false,
		"ERR ACL failure in script: User default has no permissions to run the 'zrem' command script: on @user_script:1.":                                false,
		"ERR The user executing the script can't run this command or subcommand script: 4f29, on @user_script:1.":                                        false,
		"ERR Error running script (call to f_4f29): @user_script:1: @user_script: 1: The user executing the script can't run this command or subcommand": false,
		"ERR something else": false,
	} {
		r := Parse(Acquire, nil, redisError(text))
		if r.MeansAbsent(Acquire) != absent {
			t.Errorf("%v, %q: absent is %v", r.Status, text, !absent)
		}
		if r.Status = Denied; strings.Contains(text, "script: User") && r.MeansAbsent(Acquire) {
			t.Errorf("%q, if it came to be called denied: absent", text)
		}
	}
}
