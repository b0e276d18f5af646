package realarena

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/chaos/internal/drive"
	"github.com/quorumlock/redlock/chaos/internal/realtest"
	"github.com/quorumlock/redlock/internal/testbed/redisproc"
)

// TestMachine hangs servers, with the bystander or without: only a delay that the bystander has as
// well is the computer's, and only while it lasts.
func TestMachine(t *testing.T) {
	realtest.NeedServer(t)
	for _, tt := range []struct {
		name                 string
		servers, bystander   bool
		stalled, thereAndWay bool
	}{
		{"nobody", false, false, false, false},
		{"the servers", true, false, false, false},
		{"the servers and the bystander", true, true, true, true},
		{"the bystander", false, true, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var nodes []*node
			for range 3 {
				s, err := redisproc.Start("", watchArgs...)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(s.Stop)
				nodes = append(nodes, &node{server: s})
			}
			m, err := newMachine(nodes)
			if err != nil {
				t.Fatal(err)
			}
			rec := drive.NewRecorder()
			m.begin(rec)
			defer m.end()
			var hung []*redisproc.Server
			if tt.servers {
				hung = slices.Clone(m.servers)
			}
			if tt.bystander {
				hung = append(hung, m.bystander)
			}
			time.Sleep(5 * tick)
			from := rec.Now()
			for _, s := range hung {
				if err := s.Hang(); err != nil {
					t.Error(err)
				}
			}
			const stop = 300 * time.Millisecond
			time.Sleep(stop)
			for _, s := range hung {
				if err := s.Resume(); err != nil {
					t.Error(err)
				}
			}
			to := rec.Now()
			time.Sleep(5 * tick)
			m.end()
			var both, way int
			for _, e := range rec.Sorted() {
				if e.Kind != history.Stalled || e.Until-e.At < stop/2 { // shorter ones are the computer's own
					continue
				}
				if e.At < from-2*tick || e.Until > to+stop/2 {
					t.Errorf("stalled from %v to %v: %v to %v", from, to, e.At, e.Until)
				}
				if strings.Contains(e.Error, "there and back") {
					way++
				} else {
					both++
				}
			}
			if want := 3; tt.stalled != (both == want) || !tt.stalled && both > 0 || tt.thereAndWay != (way == want) || !tt.thereAndWay && way > 0 {
				t.Errorf("%d servers were late with the bystander, and for %d the bystander was", both, way)
			}
		})
	}
}

func TestCommon(t *testing.T) {
	for _, tt := range []struct{ a, b, want []period }{
		{nil, []period{{1, 9}}, nil},
		{[]period{{1, 3}}, []period{{3, 9}}, nil},
		{[]period{{1, 5}, {7, 9}}, []period{{2, 3}, {4, 8}}, []period{{2, 3}, {4, 5}, {7, 8}}},
	} {
		if got := common(tt.a, tt.b); !slices.Equal(got, tt.want) {
			t.Errorf("%v and %v have %v in common, not %v", tt.a, tt.b, got, tt.want)
		}
	}
}
