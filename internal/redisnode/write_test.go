package redisnode

import (
	"testing"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/wire"
)

func BenchmarkWrite(b *testing.B) {
	s := &Server{owner: "host:1234"}
	h := &hashes{acquire: "0123456789012345678901234567890123456789", release: "0123456789012345678901234567890123456789"}
	q := &lane.Request{Op: wire.Acquire, Number: 1234567890123456, Latest: 1234567890123456, Mark: "0123456789abcdef0123456789abcdef", Claim: &lane.Claim{Keys: []string{"redlock:bench:1:1"}, Modes: "x", Token: "01234567-89ab-cdef-0123-456789abcdef", Millis: 10000}}
	for b.Loop() {
		s.out.Reset()
		s.write(h, q)
	}
}
