package lane

import (
	"errors"
	"os"
	"testing"

	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
)

// A redisError is an error that a server sent.
type redisError string

func (e redisError) Error() string { return string(e) }
func (redisError) RedisError()     {}

var (
	errCut            = errors.New("connection reset")
	errNoScript error = redisError("NOSCRIPT No matching script. Please use EVAL.")
)

func TestMain(m *testing.M) { os.Exit(leaks.Main(m)) }
