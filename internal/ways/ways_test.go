package ways_test

import (
	"testing"

	. "github.com/quorumlock/redlock/internal/ways"
)

// TestBar: what may be held together is said once for each pair, and both have to say it.
func TestBar(t *testing.T) {
	together := map[string]bool{"ss": true, "sr": true, "ll": true, "ww": true, "wr": true, "rr": true}
	for _, one := range "xslwr" {
		for _, other := range "xslwr" {
			want := !together[string(one)+string(other)] && !together[string(other)+string(one)]
			if got := Bar(Way(one), Way(other)); got != want {
				t.Errorf("%c and %c: %v", one, other, got)
			}
		}
	}
}
