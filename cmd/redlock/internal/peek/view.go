package peek

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/internal/facts"
	lua "github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/wire"
)

// A Node is what a node keeps of its set. It is read, and the node is not joined: so a look creates
// nothing, neither a marker nor a description.
type Node struct {
	Addr   string // its address, as it was given
	Err    error  // it does not answer, or does not say
	Text   string // what it keeps, as it is
	Told   wire.Told
	Next   *wire.Description // what it has taken in the choice of the next description; nil: nothing
	RunID  string            // of its process; "": it does not say
	Copy   bool              // it has the data of another server: see lookElsewhere
	Marked bool              // it has a marker: a client has joined it since it lost its data
}

// At asks a node what it keeps.
func At(ctx context.Context, rdb *redis.Client) Node {
	k := Node{Addr: rdb.Options().Addr}
	values, err := rdb.MGet(ctx, lua.Told, lua.Marker).Result()
	if err != nil {
		k.Err = facts.Explain(facts.Discreet(err))
		return k
	}
	text := func(v any) string { s, _ := v.(string); return s }
	k.Text = text(values[0])
	k.Told = wire.ParseTold(k.Text)
	k.RunID, _ = runID(ctx, rdb)
	_, k.Marked = wire.ParseMarker(text(values[1]))
	if taken, err := rdb.HGet(ctx, lua.Choice, "description").Result(); err == nil {
		k.Next = wire.ParseDescription(taken)
	}
	return k
}

// Answers reports whether a server refuses to say what it keeps: it runs.
func (k Node) Answers() bool { return k.Err != nil && wire.IsReply(k.Err) }

// Same reports whether a node keeps the same as it did at another look.
func (k Node) Same(o Node) bool {
	return k.Addr == o.Addr && k.Text == o.Text && k.Copy == o.Copy && (k.Err == nil) == (o.Err == nil)
}

// A View is what is known of a set without joining it.
type View struct {
	Given []Node            // of the nodes that were given
	More  []Node            // of members that were not
	Set   *wire.Description // nil: the given nodes keep none, or no majority of them keeps that of one set
}

// Read asks the nodes that were given what they keep, for patientLook at most. Hasty: it is enough that a
// majority has answered, and keeps the same. The first answers alone would not do: a member that has not been told of the
// last change, and is the nearest, would hide it each time.
func Read(servers []*redis.Options, hasty bool) *View {
	d := &View{}
	d.Given = Ask(servers, hasty)
	d.Judge()
	return d
}

// Ask asks nodes what they keep.
func Ask(servers []*redis.Options, hasty bool) []Node {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	type answer struct {
		node int
		is   Node
	}
	answers := make(chan answer, len(servers))
	for i, o := range servers {
		go func() {
			own := *o
			own.ContextTimeoutEnabled = true
			rdb := Client(&own)
			defer rdb.Close()
			answers <- answer{i, At(ctx, rdb)}
		}()
	}
	all := make([]Node, len(servers))
	for i, o := range servers {
		all[i] = Node{Addr: o.Addr, Err: context.DeadlineExceeded}
	}
	for range servers {
		a := <-answers
		all[a.node] = a.is
		alike := 0
		for _, k := range all {
			if k.Err == nil && a.is.Err == nil && k.Told.Same(a.is.Told.Description) {
				alike++
			}
		}
		if hasty && alike > len(servers)/2 {
			break
		}
	}
	cancel()
	FindCopies(servers, all)
	return all
}

// Judge finds which set it is, by the library's rule (wire.Believed): no node decides alone. Only nodes that were given
// count, and those of them that have a copy of another server's data do not.
func (d *View) Judge() { d.Set = believed(d.Given, nil) }

// believed is the description by which the nodes go that are asked.
func believed(nodes []Node, known *wire.Description) *wire.Description {
	var witnesses []wire.Witness
	for _, k := range nodes {
		w := wire.Witness{Name: k.Addr, Told: k.Told, Met: k.Err == nil}
		if k.Copy {
			w.Told, w.Met = wire.Told{}, false
		}
		witnesses = append(witnesses, w)
	}
	return wire.Believed(witnesses, known)
}

// FindCopies finds the nodes that say that they are members at other addresses, where other servers answer: these
// have a copy of their data.
func FindCopies(servers []*redis.Options, nodes []Node) {
	var all sync.WaitGroup
	for i := range nodes {
		k := &nodes[i]
		if k.Told.Description == nil || k.Told.Self == k.Addr || strings.HasPrefix(k.Told.Self, wire.AnyAddress) || k.RunID == "" {
			continue
		}
		all.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			o := OptionsAt(servers[i], k.Told.Self)
			o.ContextTimeoutEnabled = true
			rdb := Client(o)
			defer rdb.Close()
			id, err := runID(ctx, rdb)
			k.Copy = id != "" && id != k.RunID || err != nil && wire.IsReply(err) && refusesUser(err)
		})
	}
	all.Wait()
}

// refusesUser reports whether a server does not let a user in that another one has let in.
func refusesUser(err error) bool {
	code := facts.Code(err.Error())
	return code == "NOAUTH" || code == "WRONGPASS" || code == "NOPERM"
}

// runID is the name of a server's process; "": it does not say.
func runID(ctx context.Context, rdb *redis.Client) (string, error) {
	text, err := rdb.Info(ctx, "server").Result()
	about := make(facts.Facts)
	about.Add(text)
	return about["run_id"], err
}

// Complete asks the members that were not given, too.
func (d *View) Complete(servers []*redis.Options) {
	d.Add(Ask(d.Missing(servers), false))
}

// Missing are the members that were not given. They are reached as the first node is.
func (d *View) Missing(servers []*redis.Options) (more []*redis.Options) {
	for _, member := range d.Set.Members {
		if d.Node(member) == nil {
			more = append(more, OptionsAt(servers[0], member))
		}
	}
	return more
}

// Add takes in what members keep that were not given, and goes on to the description for which they vouch.
func (d *View) Add(more []Node) {
	d.More = append(d.More, more...)
	for { // step by step, to later epochs
		var members []Node
		for _, member := range d.Set.Members {
			if k := d.Node(member); k != nil {
				members = append(members, *k)
			} else {
				members = append(members, Node{Addr: member, Err: errNotAsked})
			}
		}
		next := believed(members, d.Set)
		if next == nil || next.Set != d.Set.Set || next.Epoch <= d.Set.Epoch {
			return
		}
		d.Set = next
	}
}

var errNotAsked = errors.New("it was not asked")

// IsMember reports whether a node is a member, by its own word or by its address.
func (d *View) IsMember(k *Node) bool {
	switch {
	case k.Told.Description == nil:
		return d.Set.Has(k.Addr)
	case k.Told.Set != d.Set.Set:
		return false
	}
	return d.Set.Has(k.Told.Self)
}

// Node is what a member keeps, as far as it was asked; nil: it was not.
func (d *View) Node(member string) *Node {
	all := append(slices.Clone(d.Given), d.More...)
	for i, k := range all {
		if k.Told.Description != nil && k.Told.Set == d.Set.Set && k.Told.Self == member {
			return &all[i]
		}
	}
	for i, k := range all {
		if k.Addr == member {
			return &all[i]
		}
	}
	return nil
}

// Longest is for how long a lock may live, by the description of the set; 0: it is not known.
func (d *View) Longest() time.Duration {
	if d.Set == nil {
		return 0
	}
	return d.Set.Longest()
}

// OptionsAt are those of a member that was not given: it is reached as the library does it.
func OptionsAt(first *redis.Options, addr string) *redis.Options {
	o := *first
	o.Addr, o.Network = addr, "tcp"
	if strings.HasPrefix(addr, "/") {
		o.Network = "unix"
	}
	return &o
}
