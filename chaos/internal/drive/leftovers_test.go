package drive

import "testing"

// TestLeftoversAreWhatNobodyReleases: tokens that were added, whatever the attempt's identity is, and all tokens of a process
// that died, also where it contends behind a ticket. Nothing else may be left on a node.
func TestLeftoversAreWhatNobodyReleases(t *testing.T) {
	l := &Leftovers{tokens: make(map[string]bool)}
	l.Add("c1.7.@a@@")
	l.Add("c1.8.")
	l.died("c2")
	for token, want := range map[string]bool{
		"c1.7.@a@@": true, "c1.7.@b@@": false, "c1.8.@a@@": true, "c1.9.@a@@": false,
		"c2.1.@a@@": true, "0000000001-c2.1.@a@@": true, "c22.1.@a@@": false, "c3.1.@a@@": false,
	} {
		if got := l.has(token); got != want {
			t.Errorf("%s may be left: %v, want %v", token, got, want)
		}
	}
}
