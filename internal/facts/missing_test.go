package facts

import "testing"

// TestMissing: a server that does not have a command is told by what it says, whatever it is, and its other errors
// are not taken for that.
func TestMissing(t *testing.T) {
	for _, tt := range []struct{ servers, text, want string }{
		{"Redis 7.0, Redis 8.6", "ERR unknown command 'script', with args beginning with: 'load' 'x' ", "SCRIPT"},
		{"Redis 5.0", "ERR unknown command `evalsha`, with args beginning with: `x`, ", "EVALSHA"},
		{"Redis 4.0", "ERR unknown command 'EVAL'", "EVAL"},
		{"Redis 7.0, Redis 8.6", "ERR unknown subcommand 'load'. Try SCRIPT HELP.", "SCRIPT LOAD"},
		{"Redis 6.0", "ERR Unknown subcommand or wrong number of arguments for 'load'. Try SCRIPT HELP.", "SCRIPT LOAD"},
		{"Envoy", "ERR unsupported command 'info'", "INFO"},
		{"Envoy", "unsupported command 'script'", "SCRIPT"},
		{"Redis Cloud, Upstash", "ERR Command is not available: 'EVAL'. Read more https://docs.redis.com/latest/rc/compatibility", "EVAL"},
		{"Redis 7.0", "ERR unknown command ''", ""},
		{"Redis 7.0", "ERR Unknown Redis command called from script script: d08c64b1cb54c6ba18da8b7aee637979a82594f7, on @user_script:1.", ""},
		{"Valkey 8.0", "ERR Unknown command called from script script: d08c64b1cb54c6ba18da8b7aee637979a82594f7, on @user_script:1.", ""},
		{"Redis 7.0", "NOPERM this user has no permissions to run the 'eval' command", ""},
		{"Redis 7.0", "NOSCRIPT No matching script. Please use EVAL.", ""},
		{"Redis 7.0", "ERR unknown", ""},
		{"none", "", ""},
	} {
		if got := Missing(tt.text); got != tt.want {
			t.Errorf("%s: %q lacks %q, want %q", tt.servers, tt.text, got, tt.want)
		}
	}
}

// TestProbed: what probe.lua replies, and that a server without EVAL says nothing about its scripts.
func TestProbed(t *testing.T) {
	for _, tt := range []struct {
		reply any
		err   error
		want  string // the error of Lacks
	}{
		{reply: int64(1)},
		{reply: int64(-1)},
		{reply: "ZADD", want: "ERR unknown command 'zadd'"},
		{err: said("ERR unknown command 'eval', with args beginning with: 'x'"), want: "ERR unknown command 'eval'"},
		{err: said("NOPERM this user has no permissions to run the 'eval' command")},
	} {
		f := make(Facts)
		f.Probed(tt.reply, tt.err)
		got := ""
		if err := f.Lacks(); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%v, %v: %q, want %q", tt.reply, tt.err, got, tt.want)
		}
	}
}
