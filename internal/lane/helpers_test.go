package lane

import (
	"errors"
	"os"
	"testing"

	"github.com/quorumlock/redlock/internal/redistest/leaks"
)

// A redisError is an error that a server sent.
type redisError string

func (e redisError) Error() string { return string(e) }
func (redisError) RedisError()     {}

var (
	errCut           = errors.New("connection reset")
	errLoading error = redisError("LOADING Redis is loading the dataset in memory")
	errDenied  error = redisError("NOPERM User default has no permissions to run the 'evalsha' command")
)

func TestMain(m *testing.M) { os.Exit(leaks.Main(m)) }
