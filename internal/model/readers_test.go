package model_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/model"
	"github.com/quorumlock/redlock/internal/redistest"
	"github.com/quorumlock/redlock/internal/wire"
	"github.com/redis/go-redis/v9"
)

// carriedOut is how many commands a server has carried out, those in scripts among them, but
// for the asking.
func carriedOut(t *testing.T, client *redis.Client) (n int) {
	t.Helper()
	stats := client.Info(t.Context(), "commandstats").Val()
	for _, calls := range regexp.MustCompile(`cmdstat_(\S+?):calls=(\d+)`).FindAllStringSubmatch(stats, -1) {
		if calls[1] != "info" {
			count, _ := strconv.Atoi(calls[2])
			n += count
		}
	}
	return n
}

// TestManyReadersWait: n who wait to share a lock cost a node a number of commands for each
// that does not grow with n, and no script is longer than its window, or others would wait
// for it. All of them are called, by the release or by those who were let in before.
func TestManyReadersWait(t *testing.T) {
	const readers, window = 3000, 100
	client := redistest.Clients(t, redistest.Servers(t, 1))[0]
	_, mark, _ := modelSubject(t)
	redisSubject(t, client, mark)
	ask := func(c model.Call) any {
		c.Keys, c.TTL, c.Fence = []string{"a"}, time.Hour, time.Now().UnixMicro()
		v, err := ask(client, c)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	reader := func(n int) model.Call {
		return model.Call{
			Op: wire.Acquire, Modes: "s", Token: fmt.Sprint("token.", n), Mark: mark,
			Ticket: 1e15 + int64(n), Waiter: fmt.Sprint("process.", n), Lease: 3 * time.Second, Owner: "somebody",
		}
	}
	sub := client.Subscribe(t.Context(), channel)
	defer sub.Close()
	if _, err := sub.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	calls := sub.Channel(redis.WithChannelSize(2 * readers))
	ask(model.Call{Op: wire.Acquire, Modes: "x", Token: "token.x", Mark: mark})
	for n := range readers {
		ask(reader(n))
	}
	renewed, spent := time.Time{}, 0 // commands that are not to be counted
	renew := func() {                // nobody's lease is to be over because this machine is slow
		if time.Since(renewed) < time.Second {
			return
		}
		earlier := carriedOut(t, client)
		renewed = time.Now()
		pipe := client.TxPipeline()
		for _, z := range client.ZRangeWithScores(t.Context(), "a:queue", 0, -1).Val() {
			part := strings.SplitN(z.Member.(string), " ", 3)
			pipe.ZRem(t.Context(), "a:queue", z.Member)
			pipe.ZAdd(t.Context(), "a:queue", redis.Z{Score: z.Score, Member: fmt.Sprint(part[0], " ", renewed.UnixMilli()+2990, " ", part[2])})
		}
		if _, err := pipe.Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		spent += carriedOut(t, client) - earlier
	}
	renew()
	spent = 0
	begin, before := time.Now(), carriedOut(t, client)
	ask(model.Call{Op: wire.Release, Modes: "x", Token: "token.x", Mark: mark})
	if n := carriedOut(t, client) - before; n > window+20 {
		t.Errorf("the release was %d commands", n)
	}
	if n := client.ZCard(t.Context(), "a:queue").Val(); n != readers {
		t.Fatalf("%d wait", n)
	}
	in, most := 0, 0
	var called []int
	for in < readers {
		renew()
		if err := client.Publish(t.Context(), channel, "that is all").Err(); err != nil {
			t.Fatal(err)
		}
		for m := range calls {
			n, err := strconv.Atoi(strings.TrimPrefix(m.Payload, "process."))
			if err != nil {
				break
			}
			called = append(called, n)
		}
		if len(called) == 0 {
			t.Fatalf("%d have the lock, and nobody is called", in)
		}
		n := called[len(called)-1] // the last one first: all others are before it
		called = called[:len(called)-1]
		earlier := carriedOut(t, client)
		v := ask(reader(n))
		most = max(most, carriedOut(t, client)-earlier)
		if list, is := v.([]any); is && len(list) > 2 {
			t.Fatalf("%d is called, and told %v", n, v)
		}
		in++
	}
	if most > window/2 {
		t.Errorf("one that was let in was %d commands", most)
	}
	all := carriedOut(t, client) - before - spent
	if each := all / readers; each > 25 { // of which the table of fences is four
		t.Errorf("%d commands for each", each)
	}
	t.Logf("%d let in after %v, with %d commands, of which one took %d: %s", in, time.Since(begin), all, most,
		regexp.MustCompile(`cmdstat_evalsha:\S+`).FindString(client.Info(t.Context(), "commandstats").Val()))
}
