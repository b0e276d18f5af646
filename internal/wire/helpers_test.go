package wire

import (
	"os"
	"testing"

	"github.com/quorumlock/redlock/internal/redistest"
)

// A redisError is what a server says.
type redisError string

func (e redisError) Error() string { return string(e) }
func (redisError) RedisError()     {}
func TestMain(m *testing.M)        { os.Exit(redistest.NoLeaksMain(m)) }
