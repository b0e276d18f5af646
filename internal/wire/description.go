package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/printable"
)

// A Description is what the nodes of a set have agreed on. Each of them has it, under a key without a TTL.
// That of an epoch is chosen once (choose.lua) and never changes.
type Description struct {
	Epoch     int64    `json:"epoch"` // counts the descriptions of the set, from 1
	Set       string   `json:"set"`   // names the set: a nonce, made when the set is
	Members   []string `json:"members"`
	Former    []string `json:"former,omitempty"`       // the members before, if they were others
	Past      []string `json:"past,omitempty"`         // the descriptions before, the last one last: the Sum of each
	Quorum    int      `json:"quorum,omitempty"`       // of the members; 0: a majority
	Separator string   `json:"separator,omitempty"`    // of paths; "": names are no paths
	MaxTTL    int64    `json:"max_ttl_ms"`             // the longest TTL of a lock
	Other     int64    `json:"other_ttl_ms,omitempty"` // while MaxTTL changes, the longer one of before or of the next description; 0: it does not change
	Since     int64    `json:"since_ms"`               // when it was proposed, by the clock of who did, in milliseconds

	text string // as it was read: what nodes are told is that, byte for byte; "": it was made here
}

// Bounds of a description. A node may be made to keep anything by a client that can write to it, and what
// is outside of these is no description (Check). So a client makes a bounded number of lanes, whatever a node says.
const (
	MaxMembers = 31
	MaxAddress = 300                    // bytes of a member's address
	MaxText    = 1 << 15                // bytes of a description
	MaxPast    = 32                     // how many descriptions before it a description vouches for
	MaxMillis  = 365 * 24 * 3600 * 1000 // of MaxTTL: a year

	maxSet, maxSeparator = 64, 64
	maxEpoch             = 1 << 53 // the scripts count in doubles
)

// AnyAddress is what go-redis has for the address of a failover client, which asks its sentinels for one. The names of
// such members begin with it, and are no addresses.
const AnyAddress = "FailoverClient"

// SetName makes the name of a new set of a token: one that no other set has, also if it is made of the same nodes. So what
// is left of an earlier set, in a snapshot or a copy, never passes for a later description of this one.
func SetName(token string) string {
	token = strings.ReplaceAll(token, "-", "")
	return token[max(0, len(token)-16):]
}

// Text is the description as nodes keep it. The scripts read its beginning.
func (d *Description) Text() string {
	if d.text != "" {
		return d.text
	}
	text, err := json.Marshal(d)
	if err != nil {
		panic(err) // it has nothing that JSON cannot say
	}
	return string(text)
}

// Fields reports whether the text has fields that this version does not know. Such a description is used, and told
// to nodes as it is. But a change made by this version would lose them.
func (d *Description) Fields() (unknown []string) {
	var all, known map[string]json.RawMessage
	bare := d.Copy()
	if json.Unmarshal([]byte(d.Text()), &all) != nil || json.Unmarshal([]byte(bare.Text()), &known) != nil {
		return nil
	}
	for name := range all {
		if _, ok := known[name]; !ok {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return unknown
}

// Next is a copy to make the description of the next epoch of.
func (d *Description) Next() *Description {
	next := d.Copy()
	next.Epoch, next.Former = d.Epoch+1, d.Members
	next.Past = append(slices.Clone(d.Past), d.Sum())
	if n := len(next.Past); n > MaxPast {
		next.Past = next.Past[n-MaxPast:]
	}
	return next
}

// Copy is a copy to be changed: its text is made of what it has.
func (d *Description) Copy() *Description {
	c := *d
	c.text, c.Members = "", slices.Clone(d.Members)
	return &c
}

// Sum tells descriptions apart: a node that keeps a later one vouches for those whose Sum it has in its Past.
func (d *Description) Sum() string {
	sum := sha256.Sum256([]byte(d.Text()))
	return hex.EncodeToString(sum[:8])
}

// Check reports why this cannot be the description of a set; nil: it can. It is checked when it is read from a
// node, and before one is proposed.
func (d *Description) Check() error {
	n := len(d.Members)
	switch {
	case d.Epoch < 1 || d.Epoch > maxEpoch:
		return fmt.Errorf("the epoch is %d", d.Epoch)
	case d.Set == "" || len(d.Set) > maxSet || printable.Text(d.Set) != d.Set || strings.Contains(d.Set, `"`):
		return fmt.Errorf("the name of the set is %s", clipped(d.Set))
	case n == 0:
		return errors.New("it has no members")
	case n > MaxMembers:
		return fmt.Errorf("it has %d members, and there can be %d", n, MaxMembers)
	case len(d.Former) > MaxMembers:
		return fmt.Errorf("it has %d former members, and there can be %d", len(d.Former), MaxMembers)
	case d.Quorum != 0 && (d.Quorum <= n/2 || d.Quorum > n):
		return fmt.Errorf("the quorum is %d, and with %d members it can be %d to %d", d.Quorum, n, n/2+1, n)
	case d.MaxTTL < 1 || d.MaxTTL > MaxMillis:
		return fmt.Errorf("MaxTTL is %d ms", d.MaxTTL)
	case d.Other != 0 && d.Other <= d.MaxTTL || d.Other > MaxMillis:
		return fmt.Errorf("MaxTTL is %d ms, and the longer one before or after it is %d ms", d.MaxTTL, d.Other)
	case len(d.Past) > MaxPast:
		return fmt.Errorf("it names %d descriptions before it, and there can be %d", len(d.Past), MaxPast)
	case len(d.Separator) > maxSeparator:
		return fmt.Errorf("the separator is %s", clipped(d.Separator))
	}
	for _, members := range [][]string{d.Members, d.Former} {
		for i, m := range members {
			if !anAddress(m) {
				return fmt.Errorf("member %s has no address", clipped(m))
			}
			if slices.Contains(members[:i], m) {
				return fmt.Errorf("member %s is there twice", m)
			}
		}
	}
	return nil
}

// anAddress reports whether a text can be the address of a member. Which addresses there are is the dialer's.
func anAddress(text string) bool {
	return text != "" && len(text) <= MaxAddress && printable.Text(text) == text && !strings.ContainsAny(text, `"\`)
}

// clipped quotes a text, or its beginning.
func clipped(text string) string {
	if len(text) > 100 {
		return strconv.Quote(text[:100]) + "..."
	}
	return strconv.Quote(text)
}

// Alike reports whether two descriptions are of the same members.
func (d *Description) Alike(o *Description) bool {
	return slices.Equal(slices.Sorted(slices.Values(d.Members)), slices.Sorted(slices.Values(o.Members)))
}

// Near reports whether another description can come next: of members of which one at most has come or gone.
func (d *Description) Near(next *Description) bool {
	differ := 0
	for _, m := range next.Members {
		if !d.Has(m) {
			differ++
		}
	}
	for _, m := range d.Members {
		if !next.Has(m) {
			differ++
		}
	}
	return differ <= 1
}

// Longest is for how long a lock may live that a node has forgotten: quarantines go by it (Set.bound in package lane).
func (d *Description) Longest() time.Duration { return Milliseconds(max(d.MaxTTL, d.Other)) }

// Toward gives MaxTTL and Other of the description that comes after this one on the way to a MaxTTL. Each description
// bounds two things: a client that counts by it counts no lock with a TTL over MaxTTL, and gives no vote to a node
// that lost its data less than Longest ago. Let L be what a node must outlast that forgot a lock: the MaxTTL of the
// description by which that was counted. A client counts by another description than the holder does, when that changes:
//
//   - By the one before. A node that granted by the later one keeps that, so it is no vote, unless it was emptied
//     since, and told the earlier one by a client that knows no other. So Longest of the earlier one must be L at least.
//   - By the next one, and by all that follow while the lock lives: likewise.
//
// So a MaxTTL is made longer in two steps: (10s), (10s, other 60s), (60s); and shorter: (60s), (10s, other 60s), (10s).
// In between locks live as long as both allow, and quarantines as long as both demand. New locks are bounded by the
// shorter one at once. For the last step of each (settle):
//
//   - Longer: when all members keep the second description. A member that still keeps the first one, another one
//     that was emptied and is told the first one, and a third one that is away would be enough for a client that
//     knows no other to count by the first one, and its quarantine is the shorter one. With all of them beyond it,
//     each vote by the first one is that of a node that was emptied since: it takes a quorum of these, and nobody
//     else that answers. (BY_ALL in bound.pml, docs/model)
//   - Shorter: when the locks are over that were counted before the second one. No more are counted by then, since a
//     majority keeps that; so it is after the longer TTL and its drift, or if enough nodes to meet each quorum keep
//     the second one, vote, and hold no lock that lives for longer than the shorter one: a lock that is
//     valid is on one of them, and what they get since is no vote by the first one. (WAIT)
//
// All other steps need nothing but the majority that each change needs: Longest never gets shorter with them, nor MaxTTL
// longer. That also goes for changes of their mind, from any pair of bounds to any MaxTTL.
func (d *Description) Toward(most int64) (maxTTL, other int64) {
	switch longest := max(d.MaxTTL, d.Other); {
	case most > longest:
		return d.MaxTTL, most
	case most != d.MaxTTL && longest > most:
		return most, longest
	}
	return most, 0
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

// A Kept is what a node keeps: a description, and which node of it this is.
type Kept struct {
	Self         string // its address, as the client knows it that has told the node
	*Description        // nil: the node keeps none
	Damage       error  // why what it keeps is no description; nil: it keeps one, or nothing
}

// ParseKept parses what a node keeps: its own address, a newline, and a description of the set; empty: it keeps nothing. A text
// that cannot be read is reported in Kept.Damage, and the node has no vote then.
func ParseKept(text string) Kept {
	if text == "" {
		return Kept{}
	}
	self, rest, ok := strings.Cut(text, "\n")
	if !ok || !anAddress(self) {
		return Kept{Damage: errors.New("it does not begin with the node's address")}
	}
	d, err := ReadDescription(rest)
	if err != nil {
		return Kept{Damage: err}
	}
	return Kept{Self: self, Description: d}
}

// ReadDescription reads a description, and reports why a text is none.
func ReadDescription(text string) (*Description, error) {
	if len(text) > MaxText {
		return nil, fmt.Errorf("it is longer than %d bytes", MaxText)
	}
	d := new(Description)
	if err := json.Unmarshal([]byte(text), d); err != nil {
		return nil, fmt.Errorf("it is no JSON of a description: %w", err)
	}
	if err := d.Check(); err != nil {
		return nil, err
	}
	// The scripts read the beginning, and must read the same there.
	if !strings.HasPrefix(text, fmt.Sprintf(`{"epoch":%d,"set":"%s",`, d.Epoch, d.Set)) {
		return nil, errors.New("it does not begin with its epoch and its set")
	}
	d.text = text
	return d, nil
}

// ParseDescription reads a description; nil: it is none.
func ParseDescription(text string) *Description {
	d, _ := ReadDescription(text)
	return d
}

// Same reports whether a node that was told this keeps this description. There are no two
// of an epoch; should there be, the nodes that keep the one do not vote for a client that knows the other.
func (t Kept) Same(d *Description) bool {
	return t.Description == d || t.Description != nil && d != nil && t.Set == d.Set && t.Epoch == d.Epoch && t.Text() == d.Text()
}

// Follows reports whether the node keeps this description, or a later one that has it in its past.
func (t Kept) Follows(d *Description) bool {
	return t.Same(d) || t.Description != nil && t.Set == d.Set && t.Epoch > d.Epoch && slices.Contains(t.Past, d.Sum())
}

// Other reports whether the node keeps a description that neither follows this one nor comes before it: of
// another set, or another one of its epoch.
func (t Kept) Other(d *Description) bool {
	return t.Description != nil && (t.Set != d.Set || t.Epoch == d.Epoch && !t.Same(d))
}

// Rivals reports whether the node keeps the first description of another set of the same members, and this one is a first
// description, too, that allows TTLs as long as that one does.
func (t Kept) Rivals(d *Description) bool {
	return t.Description != nil && t.Epoch == 1 && d.Epoch == 1 && t.Set != d.Set && t.Alike(d) && t.Longest() <= d.Longest()
}

// Precedes reports whether the node keeps an earlier description of the same set.
func (t Kept) Precedes(d *Description) bool {
	return t.Description != nil && t.Set == d.Set && t.Epoch < d.Epoch
}

// String is what the node keeps.
func (t Kept) String() string {
	if t.Description == nil {
		return ""
	}
	return t.Self + "\n" + t.Text()
}

// At is the epoch of the description that the node has; 0: it has none.
func (t Kept) At() int64 {
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
	if !ok || len(v) != 6 {
		return c, false
	}
	for i, to := range []*string{&c.Kept, &c.Promised, &c.Taken, &c.Value, &c.Marker} {
		if *to, ok = v[i].(string); !ok {
			return c, false
		}
	}
	lost, ok := v[5].(int64)
	c.Lost = lost != 0
	return c, ok
}

// A Chosen is what a node says to that.
type Chosen struct {
	Kept     string // what it keeps
	Promised string // the largest ballot that it has heard of
	Taken    string // the ballot of the description that it has taken; "": none
	Value    string // that description
	Marker   string // its marker
	Lost     bool   // it may have taken one that it has forgotten
}
