package certmagicredlock_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/caddyserver/certmagic"
	"github.com/quorumlock/redlock"
	certmagicredlock "github.com/quorumlock/redlock/adapters/certmagic"
	"github.com/quorumlock/redlock/internal/testbed/memredis"
)

// Files that all instances share, with locks of redlock's.
func Example() {
	nodes, err := memredis.Start(3) // redis://redis-1:6379, …
	if err != nil {
		log.Fatal(err)
	}
	defer nodes.Close()
	dir, err := os.MkdirTemp("", "certificates")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	locker, err := redlock.Connect(nodes.URLs(), &redlock.Options{Prefix: "certmagic:"})
	if err != nil {
		log.Fatal(err)
	}
	defer locker.Close()
	certmagic.Default.Storage = certmagicredlock.New(&certmagic.FileStorage{Path: dir}, locker)

	// From here on certmagic.HTTPS, certmagic.TLS and the others lock with it.
	config := certmagic.NewDefault()
	err = config.Storage.Lock(context.Background(), "issue_cert_example.com")
	s, _ := locker.Inspect(context.Background(), "issue_cert_example.com")
	fmt.Println(err, s.State)
	fmt.Println(config.Storage.Unlock(context.Background(), "issue_cert_example.com"))
	// Output:
	// <nil> held
	// <nil>
}
