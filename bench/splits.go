package main

import (
	"context"
	"fmt"
	"time"

	"github.com/quorumlock/redlock/bench/contender"
	"github.com/quorumlock/redlock/internal/testbed/redisproc"
)

// A split is a situation in which contenders that come at once may divide the nodes among them so
// that none has a quorum.
type split struct {
	name      string
	processes int
	contests  int
	nodes     func(live []string, dead string) []string
}

var splits = []split{
	{"50 at once, five nodes", 50, 4, func(live []string, _ string) []string { return live }},
	{"2 at once, three nodes of which one is dead", 2, 20, func(live []string, dead string) []string { return append(live[:2:2], dead) }},
	{"2 at once, four nodes", 2, 20, func(live []string, _ string) []string { return live[:4] }},
	{"8 at once, four nodes", 8, 10, func(live []string, _ string) []string { return live[:4] }},
}

// splits makes many processes ask for a free name at the same moment.
func (w *waits) splits(ctx context.Context) (*table, error) {
	s, err := w.interleave(ctx, "waiting, split votes", splitRows(), func(ctx context.Context, c contender.Contender) (sample, error) {
		for _, what := range splits {
			if what.name == c.Name {
				return w.split(ctx, what)
			}
		}
		return nil, nil
	})
	if err != nil {
		return nil, err
	}
	return &table{
		title: "waiting, split votes",
		text: fmt.Sprintf("All ask for a free name at the same moment, one in each process; each releases it at once. The TTL is %v. "+
			"Attempts are rounds of requests to all nodes.", w.ttl),
		head: "redlock, with",
		columns: []column{
			total("contests", "contests", count),
			median("until the first has it, p50", "first", duration),
			worst("at the most", "latest", duration),
			median("attempts of the first, p50", "tries", count),
			worst("at the most", "most tries", count),
			median("until the last has it, p50", "last", duration),
			worst("at the most", "very last", duration),
			total("never served", "unserved", count),
		},
		series: s,
		notes:  []string{"Times are from the first call on; the calls of 50 processes on few cores do not come at one instant."},
	}, nil
}

func splitRows() []contender.Contender {
	var names []string
	for _, what := range splits {
		names = append(names, what.name)
	}
	return rows(names...)
}

func (w *waits) split(ctx context.Context, what split) (sample, error) {
	gone, err := redisproc.Start("")
	if err != nil {
		return nil, err
	}
	gone.Kill()
	defer gone.Stop()
	var got sample
	err = w.with(ctx, ourName, what.nodes(w.fleet.addrs(), gone.Addr), min(what.processes, w.most), func(all *workers) error {
		var first, last, tries []time.Duration
		unserved := 0
		for range what.contests {
			o := w.one(taskAcquire, ourName)
			o.Most = 1
			h, err := all.contend(o, 0, w.ttl)
			if err != nil {
				return err
			}
			served := h.served()
			came := served[0].Asked
			for _, t := range h.acquisitions {
				came = min(came, t.Asked)
			}
			first = append(first, time.Duration(served[0].Got-came))
			last = append(last, time.Duration(served[len(served)-1].Got-came))
			tries = append(tries, time.Duration(served[0].Tries))
			unserved += len(h.acquisitions) - len(served)
		}
		got = sample{
			"contests": float64(what.contests), "unserved": float64(unserved),
			"first": quantile(first, .5), "latest": quantile(first, 1),
			"last": quantile(last, .5), "very last": quantile(last, 1),
			"tries": quantile(tries, .5), "most tries": quantile(tries, 1),
		}
		return nil
	})
	return got, err
}
