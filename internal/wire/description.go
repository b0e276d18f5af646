package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// A Description is what the nodes of a set have agreed on. Each of them has it, under a key without a TTL.
// That of an epoch is chosen once (choose.lua) and never changes.
type Description struct {
	Epoch     int64    `json:"epoch"` // counts the descriptions of the set, from 1
	Set       string   `json:"set"`   // names the set: see Named
	Members   []string `json:"members"`
	Former    []string `json:"former,omitempty"`    // the members before, if they were others
	Quorum    int      `json:"quorum,omitempty"`    // of the members; 0: a majority
	Separator string   `json:"separator,omitempty"` // of paths; "": names are no paths
	MaxTTL    int64    `json:"max_ttl_ms,omitempty"`
	Since     int64    `json:"since_ms"` // when it was proposed, by the clock of who did, in milliseconds

	says string // of one that was read: its sense if it is the first of a set, else its text
}

// LatestEpochWithout is the last epoch that a node's marker does not name. Clients from before there
// were descriptions share the nodes until then, and are shut out afterwards: see join.lua.
const LatestEpochWithout = 1

// Text is the description as nodes keep it. The scripts read its beginning.
func (d *Description) Text() string {
	text, err := json.Marshal(d)
	if err != nil {
		panic(err) // it has nothing that JSON cannot say
	}
	return string(text)
}

// Named gives the first description of a set its name, which depends on nothing but the members and what they
// agree on: clients that make it anew, after all data was lost, make the same set.
func (d *Description) Named() *Description {
	named := *d
	named.Set = ""
	sum := sha256.Sum256([]byte(named.sense()))
	named.Set = hex.EncodeToString(sum[:8])
	return &named
}

// sense is what counts of the first description of a set. When it was proposed does not, nor in which order its
// author had been given the members: if one client makes it anew, after all data was lost, while another one
// still knows what there had been, both go by the same.
func (d *Description) sense() string {
	c := *d
	c.Since, c.Members, c.Former = 0, slices.Sorted(slices.Values(d.Members)), slices.Sorted(slices.Values(d.Former))
	return c.Text()
}

// Alike reports whether two descriptions are of the same members.
func (d *Description) Alike(o *Description) bool {
	return slices.Equal(slices.Sorted(slices.Values(d.Members)), slices.Sorted(slices.Values(o.Members)))
}

// Needs is how many members must grant a lock.
func (d *Description) Needs() int {
	if d.Quorum > 0 {
		return d.Quorum
	}
	return len(d.Members)/2 + 1
}

// Has reports whether a node is a member.
func (d *Description) Has(member string) bool { return slices.Contains(d.Members, member) }

// A Told is what a node keeps: a description, and which node of it this is.
type Told struct {
	Self string // its address, as the one who has told it knows it
	*Description
}

// ParseTold reads what a node keeps; the zero Told: it keeps nothing, or something else.
func ParseTold(text string) Told {
	self, rest, ok := strings.Cut(text, "\n")
	if !ok {
		return Told{}
	}
	d := ParseDescription(rest)
	if d == nil {
		return Told{}
	}
	return Told{self, d}
}

// ParseDescription reads a description; nil: it is none.
func ParseDescription(text string) *Description {
	d := new(Description)
	if !strings.HasPrefix(text, `{"epoch":`) || json.Unmarshal([]byte(text), d) != nil || d.Epoch < 1 || d.Set == "" || len(d.Members) == 0 {
		return nil
	}
	if d.says = text; d.Epoch == 1 {
		d.says = d.sense()
	}
	return d
}

// Same reports whether a node that was told this keeps this description, which was read, too. There are no two
// of an epoch; should there be, the nodes that keep the one do not vote for a client that knows the other.
func (t Told) Same(d *Description) bool {
	return t.Description == d || t.Description != nil && t.Set == d.Set && t.Epoch == d.Epoch && t.says == d.says
}

// Other reports whether the node keeps a description that neither follows this one nor comes before it: of
// another set, or another one of its epoch.
func (t Told) Other(d *Description) bool {
	return t.Description != nil && (t.Set != d.Set || t.Epoch == d.Epoch && !t.Same(d))
}

// YieldsTo reports which of two descriptions gives way if half of their members keep each: neither has a majority
// then, and an order that means nothing else decides. They are of the same members: a set of others is left alone.
func (d *Description) YieldsTo(o *Description) bool { return d.Alike(o) && d.Less(o) }

// Less is an order of descriptions that means nothing.
func (d *Description) Less(o *Description) bool { return d.says < o.says }

// Names names what the node keeps, for join.lua: the epoch and the set; "": it keeps nothing.
func (t Told) Names() string {
	if t.Description == nil {
		return ""
	}
	return fmt.Sprintf("%d %s", t.Epoch, t.Set)
}

// Precedes reports whether the node keeps an earlier description of the same set.
func (t Told) Precedes(d *Description) bool {
	return t.Description != nil && t.Set == d.Set && t.Epoch < d.Epoch
}

// String is what the node keeps.
func (t Told) String() string {
	if t.Description == nil {
		return ""
	}
	return t.Self + "\n" + t.Text()
}

// At is the epoch of the description that the node has; 0: it has none.
func (t Told) At() int64 {
	if t.Description == nil {
		return 0
	}
	return t.Description.Epoch
}

// A Choice is a step of choosing a description (choose.lua).
type Choice struct {
	Epoch  int64
	Ballot string
	Value  string // to take; "": only promise
}

// ParseChosen reads the reply of choose.lua.
func ParseChosen(value any) (c Chosen, ok bool) {
	v, ok := value.([]any)
	if !ok || len(v) != 5 {
		return c, false
	}
	for i, to := range []*string{&c.Told, &c.Promised, &c.Taken, &c.Value} {
		if *to, ok = v[i].(string); !ok {
			return c, false
		}
	}
	lost, ok := v[4].(int64)
	c.Lost = lost != 0
	return c, ok
}

// A Chosen is what a node says to that.
type Chosen struct {
	Told     string // what it keeps
	Promised string // the largest ballot that it has heard of
	Taken    string // the ballot of the description that it has taken; "": none
	Value    string // that description
	Lost     bool   // it may have taken one that it has forgotten
}
