package redlock

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestBallotTable runs testdata/ballot.txt: the votes in the order in which they
// come, and what the ballot says after them.
func TestBallotTable(t *testing.T) {
	f, err := os.Open("testdata/ballot.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cases := 0
	for sc := bufio.NewScanner(f); sc.Scan(); {
		line, _, _ := strings.Cut(sc.Text(), "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if len(fields) != 3 {
			t.Fatalf("%q: want <yes needed>/<nodes> <votes> <verdict>", line)
		}
		cases++
		var b ballot
		if _, err := fmt.Sscanf(fields[0], "%d/%d", &b.need, &b.n); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		for _, v := range strings.Trim(fields[1], ".") {
			b.add(say(strings.IndexRune("yn-", v)))
		}
		if got := describe(&b); got != fields[2] {
			t.Errorf("%s: got %s", strings.TrimSpace(line), got)
		}
	}
	if cases < 30 {
		t.Errorf("only %d cases read", cases)
	}
}

// describe puts a ballot in the words of the table.
func describe(b *ballot) string {
	switch b.verdict() {
	case won:
		return "won"
	case pending:
		return "pending"
	}
	if b.unreachable() {
		return "unreachable"
	}
	if b.refused() {
		return "refused"
	}
	return "split"
}

// dumb decides by trying out every way in which the open votes can fall.
func dumb(votes []say, n, need int) verdict {
	if len(votes) == n {
		yes := 0
		for _, v := range votes {
			if v == voteYes {
				yes++
			}
		}
		if yes >= need {
			return won
		}
		return lost
	}
	var can [3]bool
	for _, v := range []say{voteYes, voteNo, voteNone} {
		can[dumb(append(votes[:len(votes):len(votes)], v), n, need)] = true
	}
	switch {
	case can[pending] || can[won] && can[lost]:
		return pending
	case can[won]:
		return won
	}
	return lost
}

// every calls f with every sequence of up to n votes.
func every(n int, votes []say, f func([]say)) {
	f(votes)
	if len(votes) < n {
		for _, v := range []say{voteYes, voteNo, voteNone} {
			every(n, append(votes[:len(votes):len(votes)], v), f)
		}
	}
}

// TestExtensionBallot: that of an extension is decided when it is won, when those that have not said no are too few to
// keep another client from having a quorum, or when all have answered.
func TestExtensionBallot(t *testing.T) {
	for n := 1; n <= 6; n++ {
		for need := majority(n); need <= n; need++ {
			every(n, nil, func(votes []say) {
				b := ballot{n: n, need: need, blocking: n - need + 1}
				yes, no := 0, 0
				for _, v := range votes {
					b.add(v)
					switch v {
					case voteYes:
						yes++
					case voteNo:
						no++
					}
				}
				rest := n - len(votes)
				want := pending
				switch {
				case yes >= need:
					want = won
				case n-(yes+rest) >= need, rest == 0: // so many may be another's
					want = lost
				}
				if got := b.verdict(); got != want {
					t.Fatalf("%d of %d, votes %v: verdict %d, want %d", need, n, votes, got, want)
				}
				if b.refused() != (no >= need) {
					t.Fatalf("%d of %d, votes %v: refused %v", need, n, votes, b.refused())
				}
			})
		}
	}
}

// TestBallotAgainstItsTwin compares the ballot with every possible future, for
// all votes on up to five nodes and every quorum that is a majority.
func TestBallotAgainstItsTwin(t *testing.T) {
	for n := 1; n <= 5; n++ {
		for need := majority(n); need <= n; need++ {
			every(n, nil, func(votes []say) {
				b, answers := ballot{n: n, need: need}, []say{}
				for _, v := range votes {
					b.add(v)
					if v == voteNo {
						v = voteYes
					}
					answers = append(answers, v)
				}
				if got, want := b.verdict(), dumb(votes, n, need); got != want {
					t.Fatalf("%d of %d, votes %v: verdict %d, want %d", need, n, votes, got, want)
				}
				if got, want := b.answered(), dumb(answers, n, need); got != want {
					t.Fatalf("%d of %d, votes %v: answered %d, want %d", need, n, votes, got, want)
				}
			})
		}
	}
}

// FuzzBallot checks what must hold for any number of nodes and any votes.
func FuzzBallot(f *testing.F) {
	f.Add(uint8(5), uint8(0), []byte{0, 0, 0})
	f.Add(uint8(4), uint8(1), []byte{0, 1, 2, 0})
	f.Fuzz(func(t *testing.T, nodes, more uint8, votes []byte) {
		n := int(nodes)%99 + 1
		need := min(majority(n)+int(more)%n, n)
		b := ballot{n: n, need: need}
		before := pending
		for i, v := range votes {
			if i == n {
				break
			}
			b.add(say(v % 3))
			after := b.verdict()
			if before != pending && after != before {
				t.Fatalf("%d of %d: decided %d became %d", need, n, before, after)
			}
			if after == won && (b.refused() || b.unreachable()) {
				t.Fatalf("%d of %d: won with %+v, and also refused or unreachable", need, n, b)
			}
			before = after
		}
		if b.yes+b.no+b.none == n && before == pending {
			t.Fatalf("%d of %d: all have voted and nothing is decided", need, n)
		}
		rival := ballot{n: n, need: need, yes: n - b.yes, no: b.yes}
		if b.verdict() == won && rival.verdict() == won {
			t.Fatalf("%d of %d: two winners", need, n)
		}
	})
}

// TestOneThreeFiveNodes is the lock's behaviour by number of nodes, even ones too: how many may
// fail, how many may refuse, and what the error says.
func TestOneThreeFiveNodes(t *testing.T) {
	for _, tt := range []struct {
		n, down, held int
		want          error
	}{
		{1, 0, 0, nil}, {1, 1, 0, ErrNoQuorum}, {1, 0, 1, ErrHeld},
		{2, 0, 0, nil}, {2, 1, 0, ErrNoQuorum}, {2, 0, 1, ErrHeld},
		{3, 0, 0, nil}, {3, 1, 0, nil}, {3, 2, 0, ErrNoQuorum}, {3, 0, 1, nil}, {3, 0, 2, ErrHeld}, {3, 1, 1, ErrHeld},
		{4, 1, 0, nil}, {4, 2, 0, ErrNoQuorum}, {4, 0, 1, nil}, {4, 0, 2, ErrHeld}, {4, 1, 1, ErrHeld},
		{5, 2, 0, nil}, {5, 3, 0, ErrNoQuorum}, {5, 0, 2, nil}, {5, 0, 3, ErrHeld}, {5, 2, 1, ErrHeld}, {5, 1, 1, nil},
		{7, 3, 0, nil}, {7, 4, 0, ErrNoQuorum}, {7, 1, 2, nil}, {7, 2, 2, ErrHeld},
	} {
		t.Run(fmt.Sprintf("%d nodes, %d down, %d held", tt.n, tt.down, tt.held), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				ms := newModels(tt.n)
				for i := range tt.down {
					ms[i].kill()
				}
				for i := range tt.held {
					ms[tt.n-1-i].put("a", "somebody", time.Minute)
				}
				lk := ms.locker(t, nil)
				l, err := lk.TryAcquire(t.Context(), "a")
				synctest.Wait()
				if tt.want == nil {
					if err != nil {
						t.Fatal(err)
					}
					if got, want := ms.held("a", l.Token()), tt.n-tt.down-tt.held; got != want {
						t.Errorf("held on %d nodes, want %d: late grants are part of the lock", got, want)
					}
					if err := l.Release(t.Context()); err != nil {
						t.Error(err)
					}
					synctest.Wait()
				} else {
					wantQuorumError(t, err, tt.want)
				}
				if left := ms.left(); len(left) != tt.held {
					t.Errorf("left on the nodes: %v", left)
				}
			})
		})
	}
}
