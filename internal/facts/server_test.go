package facts_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/quorumlock/redlock/internal/facts"
)

// What servers say about themselves in INFO server, in the order of the fields there.
const (
	redis60   = "# Server\r\nredis_version:6.0.16\r\nredis_git_sha1:00000000\r\nredis_git_dirty:0\r\nredis_mode:standalone\r\nrun_id:63ac2ccc8f9b6478763f08ca5fb3ab0a288cb7b4\r\nexecutable:/usr/bin/redis-server\r\n"
	redis70   = "# Server\r\nredis_version:7.0.15\r\nredis_git_sha1:00000000\r\nredis_mode:standalone\r\nrun_id:09b8fc7e29b0c24c1c7bae1bc2d8a1b7faf01d54\r\nexecutable:/usr/bin/redis-server\r\n"
	redis86   = "# Server\r\nredis_version:8.6.3\r\nredis_mode:standalone\r\nrun_id:a149dbcb7fb03e5464308150282e971d814b0699\r\nlistener0:name=tcp,bind=*,bind=-::*,port=7998\r\n"
	valkey91  = "# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.2\r\nvalkey_release_stage:ga\r\nserver_mode:standalone\r\nrun_id:0576846d6c0d7c6afec5869af5158a72edb85be8\r\navailability_zone:\r\n"
	redict73  = "# Server\r\nredict_version:7.3.6\r\nredict_git_sha1:00000000\r\nredict_mode:standalone\r\nredis_version:7.2.4\r\nrun_id:31e2cf4021cf021b41674f74fb2cd655b76eddb6\r\n"
	keyDB     = "# Server\r\nredis_version:6.3.4\r\nredis_git_sha1:7e7e5e57\r\nredis_git_dirty:1\r\nredis_mode:standalone\r\nrun_id:8254ad05855174dea8b4c9873cc248514e32239a\r\nexecutable:/data/keydb-server\r\n"
	dragonfly = "# Server\r\nredis_version:7.4.0\r\ndragonfly_version:df-v1.40.1\r\nredis_mode:standalone\r\narch_bits:64\r\nmultiplexing_api:iouring\r\ntcp_port:6379\r\nuptime_in_seconds:23\r\n"
	garnet    = "# Server\r\ngarnet_version:1.0.99\r\nos:Unix 6.1.0.28\r\nprocessor_count:8\r\nrun_id:b52f1a1a0a2a4a25a0e1f4ee4a7a0c5e11e0cbd6\r\nredis_version:7.4.3\r\nredis_mode:standalone\r\n"
	kvrocks   = "# Server\r\nversion:2.12.0\r\nkvrocks_version:2.12.0\r\nredis_version:7.0.0\r\ngit_sha1:0000000\r\nredis_mode:standalone\r\nprocess_id:1\r\ntcp_port:6666\r\n"
	unnamed   = "# Server\r\nredis_version:7.2.0\r\nredis_mode:standalone\r\ntcp_port:6379\r\n"
)

// TestUnsupported: servers whose restart cannot be recognised are rejected by name, by version, or
// by what probe.lua finds, whatever they call themselves.
func TestUnsupported(t *testing.T) {
	yes, no, mute := any(int64(1)), any(int64(0)), any(int64(-1))
	refused := errors.New("NOPERM")
	for _, tt := range []struct {
		name, info string
		probe      any
		err        error
		server     string
		why        string // in the reason; none: supported
	}{
		{"Redis 7.0", redis70, yes, nil, "Redis 7.0.15", ""},
		{"Redis 8.6", redis86, yes, nil, "Redis 8.6.3", ""},
		{"Valkey", valkey91, yes, nil, "Valkey 9.1.2", ""},
		{"Redict", redict73, yes, nil, "Redict 7.3.6", ""},
		{"that may not be asked", redis70, nil, refused, "Redis 7.0.15", ""},
		{"that cannot be asked", redis86, mute, nil, "Redis 8.6.3", ""},
		{"Redis 6.0", redis60, no, nil, "Redis 6.0.16", "replicates and persists scripts"},
		{"Redis 6.0, that may not be asked", redis60, nil, refused, "Redis 6.0.16", "replicates and persists scripts"},
		{"that has all but the scripts", redis60, yes, nil, "Redis 6.0.16", "the scripts need Redis 7.0"},
		{"that claims another version", strings.ReplaceAll(redis60, "6.0.16", "7.2.16"), no, nil, "Redis 7.2.16", "replicates and persists scripts"},
		{"that hides its version", "", no, nil, "a server that does not say its version (INFO server)", "replicates and persists scripts"},
		{"KeyDB", keyDB, no, nil, "KeyDB 6.3.4", "replicates and persists scripts"},
		{"KeyDB with version-override", strings.ReplaceAll(keyDB, "6.3.4", "7.2.4"), no, nil, "KeyDB 7.2.4", "replicates and persists scripts"},
		{"KeyDB, should it say so", "redis_version:6.3.5\r\nkeydb_version:6.3.5\r\n" + keyDB, no, nil, "KeyDB 6.3.5", "replicates and persists scripts"},
		{"Dragonfly", dragonfly, yes, nil, "Dragonfly df-v1.40.1", "run_id"},
		{"Garnet", garnet, mute, nil, "Garnet 1.0.99", "atomically"},
		{"Kvrocks", kvrocks, mute, nil, "Kvrocks 2.12.0", "scripts on disk"},
		{"no run_id", unnamed, yes, nil, "Redis 7.2.0", "run_id"},
		{"a version of one's own build", strings.ReplaceAll(redis70, "7.0.15", "255.255.255"), yes, nil, "Redis 255.255.255", ""},
		{"nothing at all", "", nil, refused, "a server that does not say its version (INFO server)", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := make(facts.Facts)
			f.Add(tt.info)
			f.Probed(tt.probe, tt.err)
			if got := f.Server(); got != tt.server {
				t.Errorf("it is %q, want %q", got, tt.server)
			}
			why, todo := f.Unsupported()
			if (why == "") != (tt.why == "") || !strings.Contains(why, tt.why) || (todo == "") != (why == "") {
				t.Errorf("%q, %q; want %q", why, todo, tt.why)
			}
		})
	}
}

// TestKeepsScripts: the reply of the probe counts, and the version if there is no reply.
func TestKeepsScripts(t *testing.T) {
	for _, tt := range []struct {
		name, info   string
		probe        any
		err          error
		keeps, known bool
	}{
		{"found to keep them", redis70, int64(0), nil, true, true},
		{"found not to", redis60, int64(1), nil, false, true},
		{"by version, old", redis60, nil, errors.New("NOPERM"), true, true},
		{"by version, new", redis70, int64(-1), nil, false, true},
		{"unknown", "", "what", nil, false, false},
	} {
		f := make(facts.Facts)
		f.Add(tt.info)
		f.Probed(tt.probe, tt.err)
		if keeps, known := f.KeepsScripts(); keeps != tt.keeps || known != tt.known {
			t.Errorf("%s: %v, %v", tt.name, keeps, known)
		}
	}
}
