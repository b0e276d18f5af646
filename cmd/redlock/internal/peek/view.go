// Package peek reads what nodes keep of their set, the locks on them and their pace, without joining the set: it
// writes neither a marker nor a description.
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

// A Node is what one node keeps of its set.
type Node struct {
	Addr   string // as it was given
	Err    error  // why the node did not answer, or refused to say what it keeps
	Text   string // the description as stored, byte for byte
	Told   wire.Kept
	Next   *wire.Description // what it has accepted in the choice of the next description; nil: nothing
	RunID  string            // of the server's process; "": unknown
	Copy   bool              // it has a copy of another server's data: see FindCopies
	Marked bool              // a client has joined the node since it last lost its data
}

// At asks one node what it keeps of its set.
func At(ctx context.Context, rdb *redis.Client) Node {
	k := Node{Addr: rdb.Options().Addr}
	values, err := rdb.MGet(ctx, lua.Told, lua.Marker).Result()
	if err != nil {
		k.Err = facts.Explain(facts.Discreet(err))
		return k
	}
	text := func(v any) string { s, _ := v.(string); return s }
	k.Text = text(values[0])
	k.Told = wire.ParseKept(k.Text)
	k.RunID, _ = runID(ctx, rdb)
	_, k.Marked = wire.ParseMarker(text(values[1]))
	if taken, err := rdb.HMGet(ctx, lua.Choice, "description").Result(); err == nil {
		k.Next = wire.ParseDescription(text(taken[0]))
	}
	return k
}

// Answers reports whether a server runs there that refuses to say what it keeps. false: it has said it, or is away.
func (k Node) Answers() bool { return k.Err != nil && wire.IsReply(k.Err) }

// Same reports whether the node keeps the same as in an earlier look.
func (k Node) Same(o Node) bool {
	return k.Addr == o.Addr && k.Text == o.Text && k.Copy == o.Copy && (k.Err == nil) == (o.Err == nil)
}

// A View is what is known of a set without joining it.
type View struct {
	Given []Node            // the nodes that the caller has named
	More  []Node            // other members, as far as they were asked
	Set   *wire.Description // its description; nil: no majority of the given nodes keeps that of one set
}

// Read asks the given nodes what they keep, for Patience at most. If hasty, it returns as soon as a majority has
// answered and keeps the same. The first majority to answer is not enough: a near member that missed the last change
// would hide it each time.
func Read(servers []*redis.Options, hasty bool) *View {
	d := &View{}
	d.Given = Ask(servers, hasty)
	d.Judge()
	return d
}

// Ask asks nodes what they keep, all at once. For hasty, see Read.
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

// Judge sets d.Set by the library's rule (wire.Believed): no node decides alone. Only given nodes count, and of these
// only those without a copy of another server's data.
func (d *View) Judge() { d.Set = believed(d.Given, nil) }

// believed returns the description that these nodes vouch for. known is the one that was believed before, or nil.
func believed(nodes []Node, known *wire.Description) *wire.Description {
	var witnesses []wire.Witness
	for _, k := range nodes {
		w := wire.Witness{Name: k.Addr, Kept: k.Told, Met: k.Err == nil}
		if k.Copy {
			w.Kept, w.Met = wire.Kept{}, false
		}
		witnesses = append(witnesses, w)
	}
	return wire.Believed(witnesses, known)
}

// FindCopies sets Copy of each node that claims to be a member at another address, where another server answers: that
// node has a copy of the other one's data.
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

// refusesUser reports whether err, a server's reply, rejects the user or the password, or the user's rights.
func refusesUser(err error) bool {
	code := facts.Code(err.Error())
	return code == "NOAUTH" || code == "WRONGPASS" || code == "NOPERM"
}

// runID returns the run_id of the server's process (INFO); "" if the server does not say.
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

// Missing returns the members that were not given. They are reached with the settings of the first given node.
func (d *View) Missing(servers []*redis.Options) (more []*redis.Options) {
	for _, member := range d.Set.Members {
		if d.Node(member) == nil {
			more = append(more, OptionsAt(servers[0], member))
		}
	}
	return more
}

// Add takes in what further members keep, and advances d.Set to the latest description that its members vouch for.
func (d *View) Add(more []Node) {
	d.More = append(d.More, more...)
	for { // one later epoch after the other
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

// IsMember reports whether the node of k is a member: by what it keeps, or by its address if it keeps nothing.
func (d *View) IsMember(k *Node) bool {
	switch {
	case k.Told.Description == nil:
		return d.Set.Has(k.Addr)
	case k.Told.Set != d.Set.Set:
		return false
	}
	return d.Set.Has(k.Told.Self)
}

// Node returns what a member keeps; nil if it was not asked.
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

// Longest returns how long a lock may live, by the description of the set; 0 without a description.
func (d *View) Longest() time.Duration {
	if d.Set == nil {
		return 0
	}
	return d.Set.Longest()
}

// OptionsAt returns the connection settings of a member that was not given: those of the first given node, as in the
// library.
func OptionsAt(first *redis.Options, addr string) *redis.Options {
	o := *first
	o.Addr, o.Network = addr, "tcp"
	if strings.HasPrefix(addr, "/") {
		o.Network = "unix"
	}
	return &o
}
