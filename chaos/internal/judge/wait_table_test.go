package judge

import (
	"testing"
	"time"
)

// waitCases are histories of waiters, for TestJudgeTable. If idle is set, a node keeps a lock that
// is not released for 10, and Grace is 5.
var waitCases = []struct{ name, run, history, want string }{
	{"before a client that waits", "settle=4", "0 1/1 ask; 4 2/1 ask verb=try; 5 2/1 got until=9; 6 2/1 release; 7 2/1 released; 8 1/1 denied", ""},
	{"before a client that goes on waiting", "settle=4", "0 1/1 ask; 4 2/1 ask verb=try; 5 2/1 got until=9; 6 2/1 release; 7 2/1 released; 10 1/1 denied", "order 5 [0 1 2]"},
	{"before a client that gets it next", "settle=4", "0 1/1 ask; 4 2/1 ask; 5 2/1 got until=9; 6 2/1 release; 6 2/1 released; 6 1/1 got until=9; 7 1/1 release; 7 1/1 released", "order 5 [0 1 2]"},
	{"before a client that is not settled", "settle=4", "0 1/1 ask; 3 2/1 ask; 5 2/1 got until=9; 6 2/1 release; 6 2/1 released; 6 1/1 got until=9; 7 1/1 release; 7 1/1 released", ""},
	{"there is no order", "", "0 1/1 ask; 4 2/1 ask; 5 2/1 got until=9; 6 2/1 release; 6 2/1 released; 6 1/1 got until=9; 7 1/1 release; 7 1/1 released", ""},
	{"before a client that waits for another", "settle=4", "0 1/1 ask name=b; 4 2/1 ask; 5 2/1 got until=9; 6 2/1 release; 6 2/1 released", ""},
	{"before a client that does not wait", "settle=4", "0 1/1 ask verb=try; 4 2/1 ask; 5 2/1 got until=9; 6 2/1 release; 6 2/1 released; 20 1/1 denied", ""},
	{"before a do", "settle=4", "0 1/1 ask verb=do; 4 2/1 ask verb=do; 5 2/1 got until=9; 6 2/1 release; 6 2/1 released; 20 - calm", "order 5 [0 1 2]"},
	{"of a client that is of another library", "settle=4", "0 1/1 ask; 4 2/1 ask verb=plain; 5 2/1 got until=9; 6 2/1 release; 6 2/1 released; 20 - calm", ""},
	{"before a client that is of another library", "settle=4", "0 1/1 ask verb=plain; 4 2/1 ask; 5 2/1 got until=9; 6 2/1 release; 6 2/1 released; 20 - calm", ""},
	{"before a client that has died", "settle=4", "0 1/1 ask; 4 2/1 ask; 5 1 crashed; 5 2/1 got until=9; 6 2/1 release; 6 2/1 released; 20 - calm", ""},
	{"before a client that dies", "settle=4", "0 1/1 ask; 4 2/1 ask; 5 2/1 got until=9; 6 1 crashed; 6 2/1 release; 6 2/1 released; 20 - calm", "order 5 [0 1 2]"},
	{"the first of those that were overtaken", "settle=4", "0 1/1 ask; 0 3/1 ask; 4 2/1 ask; 5 2/1 got until=9; 6 2/1 release; 6 2/1 released; 20 - calm", "order 5 [0 2 3]"},

	{"a node fails", "settle=4", "0 1/1 ask; 4 2/1 ask; 5 - struck; 5 2/1 got until=9; 6 2/1 release; 6 2/1 released; 20 - calm", ""},
	{"a node fails later", "settle=4", "0 1/1 ask; 4 2/1 ask; 5 2/1 got until=9; 6 - struck; 6 2/1 release; 6 2/1 released; 20 - calm", "order 5 [0 1 2]"},
	{"a node has failed just before", "settle=4 idle=90", "0 - struck for=2; 2 - healed for=2 began=0; 7 1/1 ask; 14 2/1 ask; 15 2/1 got until=19; 16 2/1 release; 16 2/1 released; 30 - calm", ""},
	{"a node has failed long before", "settle=4 idle=90", "0 - struck for=2; 2 - healed for=2 began=0; 8 1/1 ask; 14 2/1 ask; 15 2/1 got until=19; 16 2/1 release; 16 2/1 released; 30 - calm", "order 15 [2 3 4]"},
	{"a node is a little slow", "settle=4 slight=2", "0 1/1 ask; 1 - struck trouble=slow by=2 for=9; 2 - struck trouble=hang for=2; 4 2/1 ask; 5 2/1 got until=9; 6 2/1 release; 6 2/1 released; 20 - calm", "order 5 [0 3 4]"},
	{"a node is slow", "settle=4 slight=2", "0 1/1 ask; 1 - struck trouble=slow by=3 for=9; 4 2/1 ask; 5 2/1 got until=9; 6 2/1 release; 6 2/1 released; 20 - calm", ""},
	{"a node hangs", "settle=4 slight=2", "0 1/1 ask; 1 - struck trouble=hang for=3; 4 2/1 ask; 5 2/1 got until=9; 6 2/1 release; 6 2/1 released; 20 - calm", ""},
	{"no waiter is called, and another dies", "settle=4", "0 1/1 ask; 1 - struck trouble=mute for=9; 1 - struck trouble=deafen; 2 3 crashed; 2 - struck trouble=crash; 4 2/1 ask; 5 2/1 got until=9; 6 2/1 release; 6 2/1 released; 20 - calm", "order 5 [0 5 6]"},
	{"replies may be lost", "settle=4 idle=90", "0 - struck trouble=lose_replies; 50 1/1 ask; 60 2/1 ask; 65 2/1 got until=69; 66 2/1 release; 66 2/1 released; 80 - calm", ""},
	{"a clock was set", "settle=4 idle=90", "0 - struck trouble=skew; 50 1/1 ask; 60 2/1 ask; 65 2/1 got until=69; 66 2/1 release; 66 2/1 released; 80 - calm", ""},
	{"the waiter was stopped", "settle=4 slight=2", "0 1/1 ask; 1 1 held until=4; 4 2/1 ask; 5 2/1 got until=9; 6 2/1 release; 6 2/1 released; 20 - calm", ""},
	{"the waiter was stopped for a moment", "settle=4 slight=2", "0 1/1 ask; 1 1 held until=3; 4 2/1 ask; 5 2/1 got until=9; 6 2/1 release; 6 2/1 released; 20 - calm", "order 5 [0 2 3]"},
	{"the one that got it was stopped", "settle=4 slight=2", "0 1/1 ask; 4 2/1 ask; 5 2 held until=8; 8 2/1 got until=9; 9 2/1 release; 9 2/1 released; 20 - calm", ""},
	{"another client was stopped", "settle=4 slight=2", "0 1/1 ask; 4 2/1 ask; 5 3 held until=8; 8 2/1 got until=9; 9 2/1 release; 9 2/1 released; 20 - calm", "order 8 [0 1 3]"},

	{"behind another of its client", "settle=4", "0 1/1 ask; 0 1/2 ask; 4 2/1 ask; 5 1/1 denied; 8 2/1 got until=9; 9 2/1 release; 9 2/1 released; 20 - calm", ""},
	{"the first of its line since", "settle=4", "0 1/1 ask; 0 1/2 ask; 4 2/1 ask; 5 1/1 denied; 9 2/1 got until=19; 10 2/1 release; 10 2/1 released; 20 - calm", "order 9 [1 2 4]"},
	{"behind one that tries", "settle=4", "0 1/1 ask verb=try; 0 1/2 ask; 4 2/1 ask; 5 1/1 denied; 8 2/1 got until=9; 9 2/1 release; 9 2/1 released; 20 - calm", "order 8 [1 2 4]"},
	{"in a line, whatever the nodes do", "settle=4", "0 1/1 ask; 0 - struck; 4 1/2 ask; 5 1/2 got until=9; 6 1/2 release; 6 1/2 released; 20 - calm", "order 5 [0 2 3]"},
	{"in a line, and stopped", "settle=4", "0 1/1 ask; 0 1 held until=1; 4 1/2 ask; 5 1/2 got until=9; 6 1/2 release; 6 1/2 released; 20 - calm", ""},
	{"tries, and is of the same client", "settle=4", "0 1/1 ask; 0 - struck; 4 1/2 ask verb=try; 5 1/2 got until=9; 6 1/2 release; 6 1/2 released; 20 - calm", ""},

	{"no client has it", "idle=5", "0 1/1 ask; 5 1/1 got until=20; 6 1/1 release; 7 1/1 released", ""},
	{"no client has it for long", "idle=5", "0 1/1 ask; 6 1/1 got until=20; 6 1/1 release; 7 1/1 released", "idle 5 [0]"},
	{"no client has it for long, and no client gets it", "idle=5", "0 1/1 ask; 2 2/1 ask verb=do; 6 1/1 denied; 20 - calm", "idle 5 [0]; idle 7 [1]"},
	{"no client has it for long, and no client waits", "idle=5", "0 1/1 ask; 5 1/1 denied; 6 2/1 ask verb=try; 20 2/1 denied", ""},
	{"there is no bound for it", "", "0 1/1 ask; 30 1/1 denied", ""},
	{"another client has it", "idle=5", "0 2/1 ask verb=try; 0 2/1 got until=30; 1 1/1 ask; 20 2/1 release until=30; 22 2/1 released; 27 1/1 got until=40; 28 1/1 release; 28 1/1 released", ""},
	{"another client has had it", "idle=5", "0 2/1 ask verb=try; 0 2/1 got until=30; 1 1/1 ask; 20 2/1 release until=30; 22 2/1 released; 28 1/1 got until=40; 28 1/1 release; 28 1/1 released", "idle 27 [2]"},
	{"another client has another", "idle=5", "0 2/1 ask verb=try name=b; 0 2/1 got name=b until=30; 1 1/1 ask; 20 1/1 denied; 22 2/1 release; 22 2/1 released", "idle 6 [2]"},
	{"another library's client asks for it", "idle=5", "0 1/1 ask; 1 2/1 ask verb=plain; 9 2/1 denied; 14 1/1 got until=30; 15 1/1 release; 15 1/1 released", ""},
	{"another library's client has asked for it", "idle=5", "0 1/1 ask; 1 2/1 ask verb=plain; 9 2/1 denied; 15 1/1 got until=30; 16 1/1 release; 16 1/1 released", "idle 14 [0]"},
	{"another library's client asks and dies", "idle=5", "0 1/1 ask; 1 2/1 ask verb=plain; 4 2 crashed; 20 1/1 got until=30; 21 1/1 release; 21 1/1 released", "idle 19 [0]"},
	{"some have it one after the other", "idle=5", "0 1/1 ask; 3 2/1 ask verb=try; 5 2/1 got until=30; 6 2/1 release; 7 2/1 released; 11 2/2 ask verb=try; 12 2/2 got until=30; 13 2/2 release; 13 2/2 released; 18 1/1 got until=40; 19 1/1 release; 19 1/1 released", ""},
	{"one has it in the middle", "idle=5", "0 1/1 ask; 3 2/1 ask verb=try; 5 2/1 got until=30; 6 2/1 release; 7 2/1 released; 13 2/2 ask verb=try; 13 2/2 got until=30; 13 2/2 release; 13 2/2 released; 18 1/1 got until=40; 19 1/1 release; 19 1/1 released", "idle 12 [0]"},
	{"given back, and not confirmed", "idle=5", "0 2/1 ask verb=try; 0 2/1 got until=9; 1 1/1 ask; 1 2/1 release; 2 2/1 released error=late; 15 1/1 denied", ""},
	{"given back, not confirmed, and over", "idle=5", "0 2/1 ask verb=try; 0 2/1 got until=9; 1 1/1 ask; 1 2/1 release; 2 2/1 released error=late; 16 1/1 denied", "idle 15 [2]"},
	{"run out", "idle=5", "0 2/1 ask verb=try; 0 2/1 got until=9; 1 1/1 ask; 9 2/1 told; 16 1/1 denied", "idle 15 [2]"},
	{"run out, and extended", "idle=5", "0 2/1 ask verb=try; 0 2/1 got until=9; 1 1/1 ask; 1 2/1 extend; 4 2/1 failed; 9 2/1 told; 24 1/1 denied", ""},
	{"run out, extended, and over", "idle=5", "0 2/1 ask verb=try; 0 2/1 got until=9; 1 1/1 ask; 1 2/1 extend; 4 2/1 failed; 9 2/1 told; 25 1/1 denied", "idle 24 [2]"},
	{"its holder has died", "idle=5", "0 2/1 ask verb=try; 0 2/1 got until=9; 1 1/1 ask; 8 2 crashed; 23 1/1 denied", ""},
	{"its holder has long died", "idle=5", "0 2/1 ask verb=try; 0 2/1 got until=9; 1 1/1 ask; 8 2 crashed; 24 1/1 denied", "idle 23 [2]"},
	{"a waiter has died", "idle=5", "0 1/1 ask; 3 2/1 ask; 4 2 crashed; 20 1/1 denied", "idle 19 [0]"},
	{"its waiter has died", "idle=5", "0 1/1 ask; 5 1 crashed; 20 - calm", ""},
	{"no waiter is called", "idle=5", "0 1/1 ask; 0 - struck trouble=mute for=9; 1 - struck trouble=deafen; 20 1/1 denied", "idle 5 [0]"},
	{"its waiter was stopped", "idle=5 slight=2", "0 1/1 ask; 3 1 held until=6; 11 1/1 denied", ""},
	{"its waiter was stopped for a moment", "idle=5 slight=2", "0 1/1 ask; 3 1 held until=5; 10 1/1 denied", "idle 5 [0]"},
	{"too many nodes are ill", "nodes=3 idle=5", "0 1/1 ask; 1 - struck node=1 for=9; 3 - struck node=2 for=9; 7 - healed node=2 for=9 began=3; 17 1/1 denied", ""},
	{"a node is ill", "nodes=3 idle=5", "0 1/1 ask; 1 - struck node=1 for=9; 3 - struck node=1 for=9; 17 1/1 denied", "idle 5 [0]"},
	{"too many nodes were ill", "nodes=3 idle=5", "0 1/1 ask; 1 - struck node=1 for=9; 3 - struck node=2 for=9; 7 - healed node=2 for=9 began=3; 18 1/1 denied", "idle 17 [0]"},
	{"not the first of its line", "idle=5", "0 1/1 ask; 0 1/2 ask; 5 1/1 denied; 10 1/2 denied", ""},
	{"the first of its line for long", "idle=5", "0 1/1 ask; 0 1/2 ask; 5 1/1 denied; 11 1/2 denied", "idle 10 [1]"},
}

// TestJudgeSaysWhoWaits checks the texts of violations about waiting.
func TestJudgeSaysWhoWaits(t *testing.T) {
	for _, tt := range []struct{ run, history, want string }{
		{"settle=4", "0 1/1 ask; 4 2/1 ask verb=try; 5 2/1 got until=9; 6 2/1 release; 7 2/1 released; 20 - calm", `at 5ms, order: client 1 asked for "a" at 0s and waited, client 2 asked at 4ms and got it at 5ms`},
		{"idle=5", "1 1/1 ask; 9 1/1 denied", `at 6ms, idle: client 1 waited for "a", and no client had it from 1ms on`},
	} {
		got := Judge(HistoryOf(t, time.Millisecond, tt.run, tt.history)).Violations
		if len(got) != 1 || got[0].String() != tt.want {
			t.Errorf("got %v\nwant [%s]", got, tt.want)
		}
	}
}
