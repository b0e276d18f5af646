package drive_test

import (
	"reflect"
	"testing"

	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/chaos/internal/drive"
)

// TestHistoryIsSorted: the events of a client stay in their order, also at one instant.
func TestHistoryIsSorted(t *testing.T) {
	r := drive.NewRecorder()
	for _, e := range []history.Event{
		{At: 5, Client: 2, Op: 1}, {At: 5, Client: 1, Op: 1}, {At: 5, Client: 2, Op: 2}, {At: 4, Client: 3},
		{At: 5, Kind: history.Calm}, {At: 5, Client: 1, Op: 2}, {At: 4, Client: 3, Op: 1}, {At: 1 << 40, Client: 1},
	} {
		r.Add(e)
	}
	want := []history.Event{
		{At: 4, Client: 3}, {At: 4, Client: 3, Op: 1}, {At: 5, Kind: history.Calm}, {At: 5, Client: 1, Op: 1}, {At: 5, Client: 1, Op: 2},
		{At: 5, Client: 2, Op: 1}, {At: 5, Client: 2, Op: 2}, {At: 1 << 40, Client: 1},
	}
	if got := r.Sorted(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
}
