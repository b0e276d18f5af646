package redlock

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// TestMock: a client that sends nothing is a mock. Without a word the Locker would connect to a real server.
func TestMock(t *testing.T) {
	mock := redis.NewClient(&redis.Options{Addr: "10.0.0.1:6379", MaxRetries: -2}) // as redismock makes them
	defer mock.Close()
	if _, err := New([]*redis.Client{mock}, nil); err == nil || !strings.Contains(err.Error(), "it is a mock") {
		t.Errorf("New: %v", err)
	}
}
