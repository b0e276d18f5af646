// Package grpcredlock takes the fence of a lock from its holder to a gRPC service, which
// refuses those that are older than what it has seen:
//
//	locker.Do(ctx, "document", func(ctx context.Context, l *redlock.Lock) error {
//		_, err := client.Put(grpcredlock.WithFence(ctx, l), request)
//		return err // grpcredlock.IsStale(err): the lock is another's
//	})
//
// and in the service
//
//	fence, err := grpcredlock.Fence(ctx)
//
// What to do with the number there is docs/safety.md's: it belongs to what is kept, and
// is compared and stored in the same step as that.
package grpcredlock

import (
	"context"
	"strconv"

	"github.com/quorumlock/redlock"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Key is that of the metadata, in which the number is decimal.
const Key = "redlock-fence"

// WithFence has the calls that are made with the context carry the lock's fence, and no
// other's.
func WithFence(ctx context.Context, l *redlock.Lock) context.Context {
	md, ok := metadata.FromOutgoingContext(ctx) // a copy
	if !ok {
		md = metadata.MD{}
	}
	md.Set(Key, strconv.FormatInt(l.Fence(), 10))
	return metadata.NewOutgoingContext(ctx, md)
}

// Fence gives the number that came with a call. If there is none, or more than one, the
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

// ErrStale is what a service answers to a holder that comes too late. It is no error to
// try again after, and codes.FailedPrecondition says so.
var ErrStale = status.Error(codes.FailedPrecondition, "stale fence: a later holder of the lock has been here")

// IsStale reports whether an error of a call is ErrStale.
func IsStale(err error) bool {
	return err != nil && status.Code(err) == codes.FailedPrecondition && status.Convert(err).Message() == status.Convert(ErrStale).Message()
}
