package chaos

import (
	"testing"

	"github.com/quorumlock/redlock/chaos/internal/realtest"
)

func TestMain(m *testing.M) {
	ClientMain()
	realtest.Main(m)
}
