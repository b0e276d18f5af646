package grpcredlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	grpcredlock "github.com/quorumlock/redlock/adapters/grpc"
	"github.com/quorumlock/redlock/fence"
	"github.com/quorumlock/redlock/internal/testbed/memredis"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	health "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

func TestMain(m *testing.M) { os.Exit(leaks.Main(m)) }

// A service with a guard. It is a service of gRPC itself, so that no code has to be generated.
type service struct {
	health.UnimplementedHealthServer

	guard fence.Guard
}

func (s *service) Check(ctx context.Context, _ *health.HealthCheckRequest) (*health.HealthCheckResponse, error) {
	number, err := grpcredlock.Fence(ctx)
	if err != nil {
		return nil, err
	}
	err = s.guard.Do(number, func() error { return nil }) // here it reads or writes the resource
	if errors.Is(err, fence.ErrStale) {
		return nil, grpcredlock.ErrStale
	}
	return &health.HealthCheckResponse{Status: health.HealthCheckResponse_SERVING}, err
}

// start gives a client of a guarded service, and a Locker.
func start() (client health.HealthClient, lk *redlock.Locker, stop func(), err error) {
	var stops []func()
	stop = func() {
		for i := len(stops) - 1; i >= 0; i-- {
			stops[i]()
		}
	}
	defer func() {
		if err != nil {
			stop()
		}
	}()
	nodes, err := memredis.Start(3)
	if err != nil {
		return nil, nil, stop, err
	}
	stops = append(stops, nodes.Close)
	lk, err = redlock.Connect(nodes.URLs(), &redlock.Options{NodeTimeout: time.Second})
	if err != nil {
		return nil, nil, stop, err
	}
	stops = append(stops, func() { _ = lk.Close() })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, stop, err
	}
	server := grpc.NewServer()
	health.RegisterHealthServer(server, new(service))
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) })
	stops = append(stops, func() { server.Stop(); serving.Wait() })
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, nil, stop, err
	}
	stops = append(stops, func() { _ = conn.Close() })
	return health.NewHealthClient(conn), lk, stop, nil
}

// The holder of a lock whose time is over calls once more.
func Example() {
	client, lk, stop, err := start()
	if err != nil {
		log.Fatal(err)
	}
	defer stop()
	ctx := context.Background()

	call := func(l *redlock.Lock) error {
		_, err := client.Check(grpcredlock.WithFence(ctx, l), &health.HealthCheckRequest{})
		return err
	}
	first, err := lk.Acquire(ctx, "document")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the first:", call(first))
	_ = first.Release(ctx) // or its TTL ends, and it has not been told yet

	second, err := lk.Acquire(ctx, "document")
	if err != nil {
		log.Fatal(err)
	}
	defer second.Release(ctx)
	fmt.Println("the second:", call(second))
	err = call(first)
	fmt.Println("the first, late:", grpcredlock.IsStale(err), status.Code(err))
	// Output:
	// the first: <nil>
	// the second: <nil>
	// the first, late: true FailedPrecondition
}

// TestFence: a number, once; and the inner lock's where there is another around it.
func TestFence(t *testing.T) {
	client, lk, stop, err := start()
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	for _, sent := range [][]string{nil, {"seven"}, {""}, {"7", "8"}} {
		ctx := metadata.NewOutgoingContext(t.Context(), metadata.MD{grpcredlock.Key: sent})
		if _, err := client.Check(ctx, nil); status.Code(err) != codes.InvalidArgument || grpcredlock.IsStale(err) {
			t.Errorf("%q: %v", sent, err)
		}
	}

	outer, err := lk.Acquire(t.Context(), "outer")
	if err != nil {
		t.Fatal(err)
	}
	inner, err := lk.Acquire(t.Context(), "inner")
	if err != nil {
		t.Fatal(err)
	}
	ctx := metadata.AppendToOutgoingContext(t.Context(), "other", "value")
	both := grpcredlock.WithFence(grpcredlock.WithFence(ctx, outer), inner)
	if _, err := client.Check(both, nil); err != nil {
		t.Errorf("under two locks: %v", err)
	}
	md, _ := metadata.FromOutgoingContext(both)
	if got := md.Get(grpcredlock.Key); len(got) != 1 || got[0] != fmt.Sprint(inner.Fence()) || len(md.Get("other")) != 1 {
		t.Errorf("sent %v, want the fence %d", md, inner.Fence())
	}
	if md, _ := metadata.FromOutgoingContext(ctx); len(md.Get(grpcredlock.Key)) != 0 {
		t.Errorf("the caller's context has got a fence: %v", md)
	}

	for _, err := range []error{nil, errors.New("another"), status.Error(codes.FailedPrecondition, "another")} {
		if grpcredlock.IsStale(err) {
			t.Errorf("%v is stale", err)
		}
	}
	for _, l := range []*redlock.Lock{inner, outer} {
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
