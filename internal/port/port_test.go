package port

import (
	"errors"
	"net"
	"testing"
	"time"
)

func TestFind(t *testing.T) {
	var drawn []*Claim
	c, err := Find(func(c *Claim, l net.Listener) error {
		l.Close()
		if drawn = append(drawn, c); len(drawn) < 3 {
			return ErrTaken
		}
		return nil
	})
	if err != nil || c != drawn[2] {
		t.Fatalf("%v, %v after %d ports", c, err, len(drawn))
	}
	for i, closed := range []bool{true, true, false} {
		if err := drawn[i].udp.SetDeadline(time.Time{}); errors.Is(err, net.ErrClosed) != closed {
			t.Errorf("the claim of port %d is over: want %v: %v", i, closed, err)
		}
	}
	if again, l, err := claim(c.Number); err == nil {
		l.Close()
		again.Close()
		t.Error("a port was claimed twice")
	}
	c.Close()
}

func TestFindGivesUp(t *testing.T) {
	broken := errors.New("broken")
	for want, most := range map[error]int{broken: 1, ErrTaken: tries} {
		asked := 0
		_, err := Find(func(*Claim, net.Listener) error { asked++; return want })
		if !errors.Is(err, want) || asked == 0 || asked > most {
			t.Errorf("%v: %v after %d ports", want, err, asked)
		}
	}
}
