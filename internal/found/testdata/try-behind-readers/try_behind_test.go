package redlock

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/wire"
)

// TestTryEndsBehindReaders: a try ends soon where clients that came before hold the lock together, although the nodes name
// different ones of them.
func TestTryEndsBehindReaders(t *testing.T) {
	bubble(t, func(t *testing.T) {
		nodes := newModels(4)
		lk := nodes.over(t, nil, func(conn *modelConn) lane.Server { return &link{conn, time.Millisecond, 0} })
		for i, m := range nodes {
			m.put("a", wire.Sign(fmt.Sprint("reader", i%2), time.Now(), "", "", ""), 10*time.Second)
		}
		pass(time.Second)
		begin := time.Now()
		_, err := lk.TryAcquire(t.Context(), "a")
		if took := time.Since(begin); took > 20*time.Millisecond || !errors.Is(err, ErrHeld) {
			t.Errorf("after %v: %v", took, err)
		}
	})
}
