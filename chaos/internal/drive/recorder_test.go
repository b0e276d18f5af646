package drive

import (
	"reflect"
	"testing"

	"github.com/quorumlock/redlock/chaos/history"
)

// TestHistoryIsSorted: the events of a client stay in their order, also at one instant.
func TestHistoryIsSorted(t *testing.T) {
	r := &Recorder{events: []history.Event{
		{At: 5, Client: 2, Op: 1}, {At: 5, Client: 1, Op: 1}, {At: 5, Client: 2, Op: 2}, {At: 4, Client: 3},
		{At: 5, Kind: history.Calm}, {At: 5, Client: 1, Op: 2}, {At: 4, Client: 3, Op: 1}, {At: 1 << 40, Client: 1},
	}}
	want := []history.Event{
		{At: 4, Client: 3}, {At: 4, Client: 3, Op: 1}, {At: 5, Kind: history.Calm}, {At: 5, Client: 1, Op: 1}, {At: 5, Client: 1, Op: 2},
		{At: 5, Client: 2, Op: 1}, {At: 5, Client: 2, Op: 2}, {At: 1 << 40, Client: 1},
	}
	if got := r.Sorted(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
}
