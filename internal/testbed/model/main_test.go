package model_test

import (
	"os"
	"testing"

	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
)

func TestMain(m *testing.M) { os.Exit(leaks.Main(m)) }
