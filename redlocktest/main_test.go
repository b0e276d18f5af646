package redlocktest

import (
	"os"
	"testing"

	"github.com/quorumlock/redlock/internal/redistest"
)

func TestMain(m *testing.M) { os.Exit(redistest.NoLeaksMain(m)) }
