package redlocktest

import (
	"os"
	"testing"

	"github.com/quorumlock/redlock/internal/redistest/leaks"
)

func TestMain(m *testing.M) { os.Exit(leaks.Main(m)) }
