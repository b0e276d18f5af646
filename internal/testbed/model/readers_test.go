package model_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/testbed/model"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/wire"
	"github.com/redis/go-redis/v9"
)

// carriedOut is the number of commands that a server has carried out, including those in scripts, but
// not those of this question.
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

// TestManyReadersWait: n waiting readers of a lock cost a node a number of commands for each that does
// not grow with n, and no script is longer than its window, or other clients would wait for it. Every
// reader is called, by the release or by a reader that got the lock before.
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
			Op: wire.Acquire, Modes: "s", Token: fmt.Sprint("token.", n, ".@a@@"), Mark: mark,
			Ticket: 1e15 + int64(n), Waiter: fmt.Sprint("process.", n), Lease: 3 * time.Second,
		}
	}
	sub := client.Subscribe(t.Context(), channel)
	defer sub.Close()
	if _, err := sub.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	calls := sub.Channel(redis.WithChannelSize(2 * readers))
	ask(model.Call{Op: wire.Acquire, Modes: "x", Token: "token.x.@a@@", Mark: mark})
	for n := range readers {
		ask(reader(n))
	}
	renewed, spent := time.Time{}, 0 // commands that do not count
	renew := func() {                // no lease may end because this machine is slow
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
	ask(model.Call{Op: wire.Release, Modes: "x", Token: "token.x.@a@@", Mark: mark})
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
			t.Fatalf("%d have the lock, and no waiter is called", in)
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
		t.Errorf("one admission took %d commands", most)
	}
	all := carriedOut(t, client) - before - spent
	if each := all / readers; each > 25 { // four of them for the table of fences
		t.Errorf("%d commands for each", each)
	}
	t.Logf("%d admitted after %v, with %d commands, one with %d: %s", in, time.Since(begin), all, most,
		regexp.MustCompile(`cmdstat_evalsha:\S+`).FindString(client.Info(t.Context(), "commandstats").Val()))
}
