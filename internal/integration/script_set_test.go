package integration_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"github.com/quorumlock/redlock/internal/wire"
	"github.com/redis/go-redis/v9"
)

// A keeper is a node whose description is told and chosen by the scripts.
type keeper struct {
	*testing.T
	c *redis.Client
}

// keepers runs a test on a node in virtual time, and in a full run on a server.
func keepers(t *testing.T, test func(*keeper)) {
	t.Helper()
	t.Run("miniredis", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			leaks.Check(t)
			b := redistest.NewBubble(t, 1)
			b.Mini(0).FlushAll()
			test(&keeper{t, b.Client(0)})
		})
	})
	t.Run("redis", func(t *testing.T) {
		leaks.Check(t)
		c := redistest.Clients(t, redistest.Servers(t, 1))[0]
		c.FlushAll(t.Context())
		test(&keeper{t, c})
	})
}

// set is a description, with members that tell two of an epoch apart.
func set(name string, epoch int64, members ...string) *wire.Description {
	return &wire.Description{MaxTTL: 10_000, Epoch: epoch, Set: name, Members: append([]string{"a:1", "b:1", "c:1"}, members...)}
}

// joined is what a client gets that tells the node this, if it knows the marker.
type joined struct {
	mark, before string
	told         wire.Kept
}

func (k *keeper) join(self string, d *wire.Description, while string) (j joined, err error) {
	k.Helper()
	text := ""
	if d != nil {
		text = d.Text()
	}
	v, err := k.c.Eval(k.Context(), script.Join, joinKeys, "me", nodeTime(k.T, k.c)/1000, "0", text, self, while).Slice()
	if err != nil {
		return j, err
	}
	if len(v) != 4 {
		k.Fatalf("join is answered %v", v)
	}
	return joined{v[0].(string), v[1].(string), wire.ParseKept(v[3].(string))}, nil
}

// tells joins as a client that knows the marker, and checks what the node keeps then.
func (k *keeper) tells(self string, d, want *wire.Description) joined {
	k.Helper()
	now, err := k.join("", nil, "")
	if err == nil {
		now, err = k.join(self, d, now.mark)
	}
	if err != nil {
		k.Fatal(err)
	}
	switch got := now.told.Description; {
	case want == nil && got != nil, want != nil && got == nil:
		k.Errorf("told %v, it keeps %v, want %v", d, got, want)
	case want != nil && got.Text() != want.Text():
		k.Errorf("told %s, it keeps %s, want %s", d.Text(), got.Text(), want.Text())
	}
	return now
}

// TestJoinTells: a later description of the same set takes the place of an earlier one, and nothing else does.
func TestJoinTells(t *testing.T) {
	keepers(t, func(k *keeper) {
		one, two, three, other := set("s", 1), set("s", 2), set("s", 3), set("t", 9)
		k.tells("", one, nil) // it is not said which node it is
		k.tells("a:1", one, one)
		for _, older := range []*wire.Description{set("s", 1, "d:1"), other, nil} {
			k.tells("a:1", older, one)
		}
		j := k.tells("b:1", two, two)
		if j.told.Self != "a:1" {
			k.Errorf("it was a:1, and is %s", j.told.Self)
		}
		k.tells("a:1", one, two)
		k.tells("", three, three) // it knows itself which node it is
		for _, older := range []*wire.Description{one, two, set("s", 3, "d:1"), other, nil} {
			k.tells("a:1", older, three)
		}
		// Without its data it keeps what it is told first, of any set and epoch; but only from one who knows that it
		// has lost its data.
		k.c.FlushAll(k.Context())
		before, _ := k.join("", nil, "")
		k.c.FlushAll(k.Context())
		time.Sleep(2 * time.Millisecond)
		for _, while := range []string{before.mark, ""} {
			if j, err := k.join("a:1", two, while); err != nil || j.told.Description != nil {
				k.Errorf("%v, and it keeps %v", err, j.told)
			}
		}
		k.tells("a:1", other, other)
		k.tells("a:1", three, other)
	})
}

// TestMarkerNamesTheEpoch: the marker names the epoch of what the node keeps, and is as old as it was. Nothing is granted
// by the marker of another epoch.
func TestMarkerNamesTheEpoch(t *testing.T) {
	keepers(t, func(k *keeper) {
		ctx := k.Context()
		acquire := func(key, mark string) any {
			v, err := k.c.Eval(ctx, script.Acquire("me").Source, []string{key}, "token", 60_000, nodeTime(k.T, k.c), 0, mark, 0, "", 0, "x", 0, script.Bucket(key)).Result()
			if err != nil {
				return err
			}
			return v
		}
		first, err := k.join("", nil, "")
		if err != nil {
			k.Fatal(err)
		}
		was, _ := wire.ParseMarker(first.mark)
		before := first.mark
		for epoch := int64(1); epoch <= 3; epoch++ {
			time.Sleep(5 * time.Millisecond)
			j, err := k.join("a:1", set("s", epoch), before)
			is, ok := wire.ParseMarker(j.mark)
			if err != nil || !ok || is.Epoch != epoch || !is.Same(was) || is.Writer != was.Writer || j.before != before || k.c.Get(ctx, script.Marker).Val() != j.mark {
				k.Errorf("epoch %d: %v, %+v, and the marker was %s", epoch, err, j, before)
			}
			key := fmt.Sprint("key", epoch)
			for _, known := range []string{first.mark, before, "?"} {
				if v, is := acquire(key, known).([]any); !is || len(v) != 2 || v[0] != j.mark {
					k.Errorf("epoch %d: with the marker %s: %v", epoch, known, v)
				}
			}
			if v, is := acquire(key, j.mark).(int64); !is {
				k.Errorf("epoch %d, with its marker: %v", epoch, v)
			}
			before = j.mark
		}
		if ttl := k.c.PTTL(ctx, script.Marker).Val(); ttl != -1 {
			k.Errorf("the marker lives for %v", ttl)
		}
		// A node that has lost its data is told a later one at once.
		k.c.FlushAll(ctx)
		now, _ := k.join("", nil, "")
		again, err := k.join("a:1", set("s", 3), now.mark)
		if m, ok := wire.ParseMarker(again.mark); err != nil || !ok || m.Epoch != 3 {
			k.Errorf("after its data was lost: %v, %+v", err, again)
		}
		// If somebody deletes what the node keeps of its set, it counts as emptied.
		k.c.Del(ctx, script.Told)
		time.Sleep(5 * time.Millisecond)
		now, err = k.join("", nil, "")
		old, _ := wire.ParseMarker(again.mark)
		if m, ok := wire.ParseMarker(now.mark); err != nil || now.before != "" || now.told.Description != nil || !ok || m.Epoch != 0 || m.Same(old) {
			k.Errorf("what it keeps was deleted: %v, %+v", err, now)
		}
		again, err = k.join("a:1", set("s", 3), now.mark)
		if m, ok := wire.ParseMarker(again.mark); err != nil || !ok || m.Epoch != 3 {
			k.Errorf("told again: %v, %+v", err, again)
		}
	})
}

// choose takes part in the choice of an epoch: no value promises.
func (k *keeper) choose(epoch int64, ballot int, value *wire.Description) wire.Chosen {
	k.Helper()
	text, of := "", "s"
	if value != nil {
		text, of = value.Text(), value.Set
	}
	if epoch == 1 {
		of = ""
	}
	v, err := k.c.Eval(k.Context(), script.Choose, []string{script.Told, script.Choice}, epoch, fmt.Sprintf("%024d", ballot), text, of).Result()
	c, ok := wire.ParseChosen(v)
	if err != nil || !ok {
		k.Fatalf("choose is answered %v, %v", v, err)
	}
	return c
}

// TestChoose: the rules by which a node takes part in a choice.
func TestChoose(t *testing.T) {
	keepers(t, func(k *keeper) {
		one, other := set("s", 1), set("t", 1)
		want := func(when string, got wire.Chosen, promised, taken int, value *wire.Description) {
			k.Helper()
			text := func(n int) string {
				if n == 0 {
					return ""
				}
				return fmt.Sprintf("%024d", n)
			}
			has := ""
			if value != nil {
				has = value.Text()
			}
			if got.Promised != text(promised) || got.Taken != text(taken) || got.Value != has {
				k.Errorf("%s: %+v, want %d promised, and %d taken of %q", when, got, promised, taken, has)
			}
		}
		want("the first promise", k.choose(1, 2, nil), 2, 0, nil)
		want("a smaller ballot", k.choose(1, 1, nil), 2, 0, nil)
		want("a smaller ballot is taken", k.choose(1, 1, other), 2, 0, nil)
		want("a larger one", k.choose(1, 5, nil), 5, 0, nil)
		want("the one before, which has been overtaken", k.choose(1, 2, one), 5, 0, nil)
		want("the larger one is taken", k.choose(1, 5, one), 5, 5, one)
		want("a later proposer learns of it", k.choose(1, 7, nil), 7, 5, one)
		want("the earlier one asks again", k.choose(1, 5, other), 7, 5, one)
		want("the later one takes it over", k.choose(1, 7, one), 7, 7, one)
		want("a ballot that was not promised", k.choose(1, 9, other), 9, 9, other) // as Paxos allows
		for _, ahead := range []int64{2, 3} {
			want("a choice for later", k.choose(ahead, 10, nil), 0, 0, nil)
			want("a choice for later is taken", k.choose(ahead, 10, set("s", ahead)), 0, 0, nil)
		}
		want("and changes nothing", k.choose(1, 9, nil), 9, 9, other)

		k.tells("a:1", one, one)
		if n := k.c.Exists(k.Context(), script.Choice).Val(); n != 0 {
			k.Error("the choice goes on when there is a description")
		}
		late := k.choose(1, 11, nil)
		want("a choice that is over", late, 0, 0, nil)
		if told := wire.ParseKept(late.Kept); told.Description == nil || told.Text() != one.Text() {
			k.Errorf("it is over, and the node says that it keeps %q", late.Kept)
		}
		want("the next one of another set", k.choose(2, 5, set("t", 2)), 0, 0, nil)
		want("the next one", k.choose(2, 1, set("s", 2)), 1, 1, set("s", 2))
		k.tells("", set("s", 3), set("s", 3)) // it has missed one
		want("the one that it missed", k.choose(2, 2, nil), 0, 0, nil)
		want("the one after", k.choose(4, 1, nil), 1, 0, nil)
	})
}

// TestChooseThatComesLate: a node that has lost its data is given a description again. A request that comes only then, of a
// client that has seen the earlier data, must not make it look as if the node had lost nothing since that was chosen.
func TestChooseThatComesLate(t *testing.T) {
	keepers(t, func(k *keeper) {
		for epoch, comes := range map[int64]string{1: "", 2: "comes"} {
			of := ""
			if epoch > 1 {
				of = "s"
			}
			k.c.FlushAll(k.Context())
			before, _ := k.join("", nil, "")
			k.c.FlushAll(k.Context())
			time.Sleep(5 * time.Millisecond) // the next marker is of a later millisecond
			now, _ := k.join("", nil, "")
			if err := k.c.Eval(k.Context(), script.Choose, []string{script.Told, script.Choice}, epoch, fmt.Sprintf("%024d", 5), set("s", epoch).Text(), of, comes, before.mark).Err(); err != nil {
				k.Fatal(err)
			}
			if _, err := k.join("a:1", set("s", epoch), now.mark); err != nil {
				k.Fatal(err)
			}
			if said := k.choose(epoch+1, 6, nil); !said.Lost || said.Promised == "" {
				k.Errorf("epoch %d: %+v, want one that may have lost its data", epoch, said)
			}
		}
	})
}

// TestMerge: counters become at least as large as they are told, and are never made smaller.
func TestMerge(t *testing.T) {
	keepers(t, func(k *keeper) {
		merge := func(args ...any) string {
			k.Helper()
			v, err := k.c.Eval(k.Context(), script.Merge, []string{script.Fences, script.Belows}, args...).Result()
			if err != nil {
				k.Error(err)
			}
			return fmt.Sprint(v)
		}
		const large = "9007199254740991"
		for _, tt := range []struct {
			args []any
			want string
		}{
			{nil, "[[] []]"},
			{[]any{2, 10, "1", large, "2", 7, "1"}, "[[1 10 2 " + large + "] [1 7]]"},
			{[]any{2, 9, "1", 8, "3"}, "[[3 8 1 10 2 " + large + "] [1 7]]"},
			{[]any{0, 6, "1", 5, "4"}, "[[3 8 1 10 2 " + large + "] [4 5 1 7]]"},
			{[]any{1, 11, "1"}, "[[3 8 1 11 2 " + large + "] [4 5 1 7]]"},
		} {
			if tt.args != nil {
				merge(tt.args...)
			}
			if got := merge(); got != tt.want {
				k.Errorf("after %v: %s, want %s", tt.args, got, tt.want)
			}
		}
	})
}
