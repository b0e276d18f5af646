// Command service is a small service that uses locks in the ways that most services do. It runs on many machines:
//
//	one of them makes the schedule          Do in a loop: leader election
//	one of them cleans up, once a minute    Do with Wait(0) and MinHold
//	PUT /orders/ID pays an order once       Do with Wait, and package fence
//	GET /documents/ID/edit locks a page     RenewWhile, for as long as the connection lives
//	GET /leader says which machine leads    Watch
//	SIGTERM hands all locks on at once      Shutdown
//
// Its environment has NAME, the machine's; LISTEN, the address for HTTP; DATABASE, the file of an SQLite; and
// REDLOCK_NODES, the URLs of the Redis servers.
package main

import (
	"context"
	"database/sql"
	"errors"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"

	_ "github.com/mattn/go-sqlite3"
	"github.com/quorumlock/redlock"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx); err != nil {
		log.Fatal(err)
	}
}

// serve runs the service until ctx ends.
func serve(ctx context.Context) error {
	name := os.Getenv("NAME")
	db, err := sql.Open("sqlite3", os.Getenv("DATABASE"))
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", os.Getenv("LISTEN"))
	if err != nil {
		return err
	}
	defer listener.Close()
	locker, err := redlock.Connect(strings.Fields(os.Getenv("REDLOCK_NODES")), &redlock.Options{Owner: name})
	if err != nil {
		return err
	}
	service := &Service{Name: name, Locker: locker, DB: db, Pay: func(context.Context, string) error { return nil }}
	server := &http.Server{Handler: service.Handler()}
	go func() { _ = server.Serve(listener) }()
	return errors.Join(service.Run(ctx), server.Shutdown(context.Background())) // in this order
}
