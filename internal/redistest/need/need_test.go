package need

import "testing"

func TestSized(t *testing.T) {
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
		t.Setenv(UseServers, c.use)
		t.Setenv(RequireRedis, c.require)
		t.Setenv(UseLong, c.long)
		if got := Sized("quick", "full", "long"); got != c.want {
			t.Errorf("%+v: the run is %s", c, got)
		}
		if !Sample(6, 3) || Sample(7, 3) != (c.want != "quick") {
			t.Errorf("%+v: of the cases 6 and 7 %v and %v run", c, Sample(6, 3), Sample(7, 3))
		}
	}
}
