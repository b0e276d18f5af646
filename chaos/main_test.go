package chaos

import (
	"os"
	"runtime/debug"
	"testing"

	"github.com/quorumlock/redlock/chaos/internal/realtest"
)

// TestMain has the tests run with a larger heap than Go gives them: most of what miniredis allocates for a script
// soon is garbage (leaks.Main does the same).
func TestMain(m *testing.M) {
	ClientMain()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	realtest.Main(m)
}
