package wire

import (
	"errors"
	"fmt"
	"testing"
)

// refusals are error texts, and the servers that send them: to EVALSHA and within scripts, to
// users without the command, the key or the channel, with a maxmemory of one byte, with a dump.rdb
// that is a directory, with min-replicas-to-write, from a replica without its master, and while
// another script runs. Redis 6.0, which cannot vote, is there for the record.
var refusals = []struct {
	want          Status
	servers, text string
}{
	{Denied, "Redis 6.0, Redis 7.0", "NOPERM this user has no permissions to access one of the keys used as arguments"},
	{Denied, "Redis 6.0, Redis 7.0, Redis 8.0, Redis 8.6, Redict 7.3, Valkey 8.0, Valkey 8.1, Valkey 9.1", "NOAUTH Authentication required."},
	{Denied, "Redis 6.0", "ERR Error running script (call to f_1271fed6b06f437e667be3101ee19c5076ca9cc4): @user_script:1: @user_script: 1: The user executing the script can't run this command or subcommand"},
	{Denied, "Redis 6.0", "NOPERM this user has no permissions to run the 'eval' command or its subcommand"},
	{Denied, "Redis 6.0", "ERR Error running script (call to f_b085978451f560271f890f5fe5c8c00279a1ffe1): @user_script:1: @user_script: 1: The user executing the script can't access at least one of the keys mentioned in the command arguments"},
	{Denied, "Redis 7.0", "ERR The user executing the script can't run this command or subcommand script: 1271fed6b06f437e667be3101ee19c5076ca9cc4, on @user_script:1."},
	{Denied, "Redis 7.0", "ERR The user executing the script can't run this command or subcommand script: 96084cafba7e9ac9a6dc534df7f0f55ff8360363, on @user_script:1."},
	{Denied, "Redis 7.0", "ERR The user executing the script can't publish to the channel mentioned in the command script: 96084cafba7e9ac9a6dc534df7f0f55ff8360363, on @user_script:1."},
	{Denied, "Redis 7.0", "NOPERM this user has no permissions to run the 'eval' command"},
	{Denied, "Redis 7.0", "ERR The user executing the script can't access at least one of the keys mentioned in the command arguments script: b085978451f560271f890f5fe5c8c00279a1ffe1, on @user_script:1."},
	{Denied, "Redis 8.0, Redis 8.6, Redict 7.3, Valkey 8.0, Valkey 8.1", "ERR ACL failure in script: User a has no permissions to run the 'set' command script: 1271fed6b06f437e667be3101ee19c5076ca9cc4, on @user_script:1."},
	{Denied, "Redis 8.0, Redis 8.6, Redict 7.3, Valkey 8.0, Valkey 8.1", "ERR ACL failure in script: No permissions to access a channel script: 96084cafba7e9ac9a6dc534df7f0f55ff8360363, on @user_script:1."},
	{Denied, "Redis 8.0, Redis 8.6, Redict 7.3, Valkey 8.0, Valkey 8.1, Valkey 9.1", "NOPERM User b has no permissions to run the 'eval' command"},
	{Denied, "Redis 8.0, Redis 8.6, Redict 7.3, Valkey 8.0, Valkey 8.1, Valkey 9.1", "NOPERM No permissions to access a key"},
	{Denied, "Redis 8.0, Redis 8.6, Redict 7.3, Valkey 8.0, Valkey 8.1", "ERR ACL failure in script: No permissions to access a key script: b085978451f560271f890f5fe5c8c00279a1ffe1, on @user_script:1."},
	{Denied, "Valkey 9.1", "ERR ACL failure in script: User a has no permissions to run the 'set' command script: on @user_script:1."},
	{Denied, "Valkey 9.1", "ERR ACL failure in script: No permissions to access a channel script: on @user_script:1."},
	{Denied, "Valkey 9.1", "ERR ACL failure in script: No permissions to access a key script: on @user_script:1."},
	{OutOfMemory, "Redis 6.0, Redis 7.0, Redis 8.0, Redis 8.6, Redict 7.3, Valkey 8.0, Valkey 8.1, Valkey 9.1", "OOM command not allowed when used memory > 'maxmemory'."},
	{OutOfMemory, "Redis 6.0", "ERR Error running script (call to f_1271fed6b06f437e667be3101ee19c5076ca9cc4): @user_script:1: @user_script: 1: -OOM command not allowed when used memory > 'maxmemory'."},
	{OutOfMemory, "Redis 7.0, Redis 8.0, Redis 8.6, Redict 7.3, Valkey 8.0, Valkey 8.1", "OOM command not allowed when used memory > 'maxmemory'. script: 1271fed6b06f437e667be3101ee19c5076ca9cc4, on @user_script:1."},
	{OutOfMemory, "Valkey 9.1", "OOM command not allowed when used memory > 'maxmemory'. script: on @user_script:1."},
	{ReadOnly, "Redis 6.0, Redis 7.0, Redis 8.0, Redis 8.6, Redict 7.3, Valkey 8.0, Valkey 8.1, Valkey 9.1", "NOREPLICAS Not enough good replicas to write."},
	{ReadOnly, "Redis 6.0", "ERR Error running script (call to f_1271fed6b06f437e667be3101ee19c5076ca9cc4): @user_script:1: @user_script: 1: -READONLY You can't write against a read only replica."},
	{ReadOnly, "Redis 7.0, Redis 8.0, Redis 8.6, Redict 7.3, Valkey 8.0, Valkey 8.1", "NOREPLICAS Not enough good replicas to write. script: 1271fed6b06f437e667be3101ee19c5076ca9cc4, on @user_script:1."},
	{ReadOnly, "Redis 7.0, Redis 8.0, Redis 8.6, Redict 7.3, Valkey 8.0, Valkey 8.1", "READONLY You can't write against a read only replica. script: 1271fed6b06f437e667be3101ee19c5076ca9cc4, on @user_script:1."},
	{ReadOnly, "Redis 7.0, Redis 8.0, Redis 8.6", "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. Commands that may modify the data set are disabled, because this instance is configured to report errors during writes if RDB snapshotting fails (stop-writes-on-bgsave-error option). Please check the Redis logs for details about the RDB error. script: 1271fed6b06f437e667be3101ee19c5076ca9cc4, on @user_script:1."},
	{ReadOnly, "Redict 7.3", "MISCONF Redict is configured to save RDB snapshots, but it's currently unable to persist to disk. Commands that may modify the data set are disabled, because this instance is configured to report errors during writes if RDB snapshotting fails (stop-writes-on-bgsave-error option). Please check the Redict logs for details about the RDB error. script: 1271fed6b06f437e667be3101ee19c5076ca9cc4, on @user_script:1."},
	{ReadOnly, "Valkey 8.0, Valkey 8.1", "MISCONF Valkey is configured to save RDB snapshots, but it's currently unable to persist to disk. Commands that may modify the data set are disabled, because this instance is configured to report errors during writes if RDB snapshotting fails (stop-writes-on-bgsave-error option). Please check the Valkey logs for details about the RDB error. script: 1271fed6b06f437e667be3101ee19c5076ca9cc4, on @user_script:1."},
	{ReadOnly, "Valkey 9.1", "NOREPLICAS Not enough good replicas to write. script: on @user_script:1."},
	{ReadOnly, "Valkey 9.1", "READONLY You can't write against a read only replica. script: on @user_script:1."},
	{ReadOnly, "Valkey 9.1", "MISCONF Valkey is configured to save RDB snapshots, but it's currently unable to persist to disk. Commands that may modify the data set are disabled, because this instance is configured to report errors during writes if RDB snapshotting fails (stop-writes-on-bgsave-error option). Please check the Valkey logs for details about the RDB error. script: on @user_script:1."},
	{Busy, "Redis 6.0, Redis 7.0, Redis 8.0, Redis 8.6", "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."},
	{Busy, "Redict 7.3", "BUSY Redict is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."},
	{Busy, "Valkey 8.0, Valkey 8.1, Valkey 9.1", "BUSY Valkey is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."},
	{Loading, "Redis 6.0, Redis 7.0, Redis 8.0, Redis 8.6, Redict 7.3, Valkey 8.0, Valkey 8.1, Valkey 9.1", "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."},
	{Foreign, "Redis 6.0", "ERR Error running script (call to f_620cd258c2c9c88c9d10db67812ccf663d96bdc6): @user_script:1: WRONGTYPE Operation against a key holding the wrong kind of value"},
	{Foreign, "Redis 7.0, Redis 8.0, Redis 8.6, Redict 7.3, Valkey 8.0, Valkey 8.1", "WRONGTYPE Operation against a key holding the wrong kind of value script: 620cd258c2c9c88c9d10db67812ccf663d96bdc6, on @user_script:1."},
	{Foreign, "Valkey 9.1", "WRONGTYPE Operation against a key holding the wrong kind of value script: on @user_script:1."},
	{Failed, "Redis 6.0, Redis 7.0, Redis 8.0, Redis 8.6, Redict 7.3", "NOSCRIPT No matching script. Please use EVAL."},
	{Failed, "Redis 6.0", "ERR Error running script (call to f_d08c64b1cb54c6ba18da8b7aee637979a82594f7): @user_script:1: @user_script: 1: Unknown Redis command called from Lua script"},
	{Failed, "Redis 6.0", "ERR Error running script (call to f_694a5fe1ddb97a4c6a1bf299d9537c7d3d0f84e7): @user_script:1: Script killed by user with SCRIPT KILL..."},
	{Failed, "Redis 7.0, Redis 8.0, Redis 8.6", "ERR Unknown Redis command called from script script: d08c64b1cb54c6ba18da8b7aee637979a82594f7, on @user_script:1."},
	{Failed, "Redis 7.0, Redis 8.0, Redis 8.6, Redict 7.3, Valkey 8.0", "ERR Script killed by user with SCRIPT KILL... script: 694a5fe1ddb97a4c6a1bf299d9537c7d3d0f84e7, on @user_script:1."},
	{Failed, "Redict 7.3", "ERR Unknown Redict command called from script script: d08c64b1cb54c6ba18da8b7aee637979a82594f7, on @user_script:1."},
	{Failed, "Valkey 8.0, Valkey 8.1", "ERR Unknown command called from script script: d08c64b1cb54c6ba18da8b7aee637979a82594f7, on @user_script:1."},
	{Failed, "Valkey 8.0, Valkey 8.1, Valkey 9.1", "NOSCRIPT No matching script."},
	{Failed, "Valkey 8.1", "ERR Script killed by user with SCRIPT KILL. script: 694a5fe1ddb97a4c6a1bf299d9537c7d3d0f84e7, on @user_script:1."},
	{Failed, "Valkey 9.1", "ERR Unknown command called from script script: on @user_script:1."},
	{Failed, "Valkey 9.1", "ERR Script killed by user with SCRIPT KILL. script: on @user_script:1."},
}

// TestRefusals: the same refusal has the same status, whatever the server's words are, and also if
// the error is wrapped.
func TestRefusals(t *testing.T) {
	for _, tt := range refusals {
		for _, err := range []error{redisError(tt.text), fmt.Errorf("as it was sent: %w", redisError(tt.text))} {
			if got := Classify(err); got != tt.want {
				t.Errorf("%s: %q is %v, want %v", tt.servers, err, got, tt.want)
			}
		}
	}
	if got := Classify(errors.New("NOPERM from nobody")); got != Unreachable {
		t.Errorf("a text that no server sends is %v", got)
	}
}
