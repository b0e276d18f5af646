// Package grpcredlock passes the fence of a lock from its holder to a gRPC service, which rejects a fence that
// is smaller than one it has seen:
//
//	locker.Do(ctx, "document", func(ctx context.Context, l *redlock.Lock) error {
//		_, err := client.Put(grpcredlock.WithFence(ctx, l), request)
//		return err // grpcredlock.IsStale(err): another holder has the lock
//	})
//
// and in the service
//
//	fence, err := grpcredlock.Fence(ctx)
//
// The service gives the fence to a guard of package fence, which stores it with the resource, and compares it in the
// same step as the write; and returns [ErrStale] where the guard returns fence.ErrStale.
package grpcredlock

import (
	"context"
	"strconv"

	"github.com/quorumlock/redlock"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Key is the metadata key; its value is the fence as a decimal number.
const Key = "redlock-fence"

// WithFence makes calls with this context carry the lock's fence, and no other.
func WithFence(ctx context.Context, l *redlock.Lock) context.Context {
	md, ok := metadata.FromOutgoingContext(ctx) // a copy
	if !ok {
		md = metadata.MD{}
	}
	md.Set(Key, strconv.FormatInt(l.Fence(), 10))
	return metadata.NewOutgoingContext(ctx, md)
}

// Fence returns the fence of a call. If there is none, or more than one, the
// error is for the caller, with codes.InvalidArgument.
func Fence(ctx context.Context) (int64, error) {
	values := metadata.ValueFromIncomingContext(ctx, Key)
	if len(values) != 1 {
		return 0, status.Errorf(codes.InvalidArgument, "%d times %s in the metadata, and it is required once: the fence of the lock", len(values), Key)
	}
	fence, err := strconv.ParseInt(values[0], 10, 64)
	if err != nil {
		return 0, status.Errorf(codes.InvalidArgument, "%s: %v", Key, err)
	}
	return fence, nil
}

// ErrStale is a service's answer to a holder that comes too late. The caller must not try again after it, as
// codes.FailedPrecondition says.
var ErrStale = status.Error(codes.FailedPrecondition, "stale fence: a later holder of the lock has been here")

// IsStale reports whether an error of a call is ErrStale.
func IsStale(err error) bool {
	return err != nil && status.Code(err) == codes.FailedPrecondition && status.Convert(err).Message() == status.Convert(ErrStale).Message()
}
