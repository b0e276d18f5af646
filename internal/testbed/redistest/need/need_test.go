package need_test

import (
	"testing"

	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// TestSizes: the environment variables decide the size of a run, and the race detector keeps a full run to the quick numbers.
func TestSizes(t *testing.T) {
	for _, c := range []struct {
		use, require, long, want string
	}{
		{"", "", "", "quick"},
		{"0", "0", "0", "quick"},
		{"1", "", "", "full"},
		{"", "1", "", "full"},
		{"", "", "1", "long"},
		{"1", "1", "1", "long"},
	} {
		t.Setenv(need.UseServers, c.use)
		t.Setenv(need.RequireRedis, c.require)
		t.Setenv(need.UseLong, c.long)
		if need.Raced && c.want == "full" {
			c.want = "quick" // the numbers, and not which tests run
		}
		if got := need.Sized("quick", "full", "long"); got != c.want {
			t.Errorf("%+v: the run is %s", c, got)
		}
		if !need.Sample(6, 3) || need.Sample(7, 3) != (c.want != "quick") {
			t.Errorf("%+v: of the cases 6 and 7 %v and %v run", c, need.Sample(6, 3), need.Sample(7, 3))
		}
	}
}
