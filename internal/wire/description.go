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

// A Description is what the nodes of a set have agreed on: members, quorum, longest TTL. Each node keeps it under a key
// without a TTL. The members choose one description for each epoch (choose.lua), and it never changes.
type Description struct {
	Epoch     int64    `json:"epoch"` // the number of this description, from 1
	Set       string   `json:"set"`   // names the set: a nonce, made with the set
	Members   []string `json:"members"`
	Former    []string `json:"former,omitempty"`       // the members before, if they were others
	Past      []string `json:"past,omitempty"`         // the Sum of each description before, the last one last
	Quorum    int      `json:"quorum,omitempty"`       // how many members must grant a lock; 0: a majority
	Separator string   `json:"separator,omitempty"`    // of the folders in a name; "": names are no paths
	MaxTTL    int64    `json:"max_ttl_ms"`             // the longest TTL of a lock
	Other     int64    `json:"other_ttl_ms,omitempty"` // while MaxTTL changes, the longer one of the two; 0: it does not change
	Since     int64    `json:"since_ms"`               // when it was proposed, by the proposer's clock

	text string // as it was read, since nodes are told it byte for byte; "": it was made here
}

// Bounds of a description (Check). A client with write access can make a node keep anything; with these bounds no text
// makes a client open an unbounded number of connections.
const (
	MaxMembers = 31
	MaxAddress = 300                    // bytes of a member's address
	MaxText    = 1 << 15                // bytes of a description
	MaxPast    = 32                     // how many descriptions before it a description vouches for
	MaxMillis  = 365 * 24 * 3600 * 1000 // of MaxTTL: a year

	maxSet, maxSeparator = 64, 64
	maxEpoch             = 1 << 53 // the scripts count in doubles
)

// AnyAddress is what go-redis reports as the address of a failover client, which asks its sentinels for one. The names
// of such members begin with it, and are no addresses.
const AnyAddress = "FailoverClient"

// SetName makes the name of a new set from a random token: its last 16 characters. No other set has it, not even one of
// the same nodes: what is left of an earlier set, in a snapshot or a copy, never passes for a description of this one.
func SetName(token string) string {
	token = strings.ReplaceAll(token, "-", "")
	return token[max(0, len(token)-16):]
}

// Text returns the description in JSON, as nodes keep it: the text that it was read from, or one made from the fields.
// The scripts read epoch and set at its beginning.
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

// Fields returns the fields of the text that this version does not know; nil: none. Such a description is used, and
// passed on to nodes unchanged, but a change made by this version would lose those fields.
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

// Next returns a copy from which the caller makes the next description: it has the next epoch, the members of d as
// Former, and d's Sum at the end of Past.
func (d *Description) Next() *Description {
	next := d.Copy()
	next.Epoch, next.Former = d.Epoch+1, d.Members
	next.Past = append(slices.Clone(d.Past), d.Sum())
	if n := len(next.Past); n > MaxPast {
		next.Past = next.Past[n-MaxPast:]
	}
	return next
}

// Copy returns a copy whose fields and Members the caller may change: its Text is made from its fields.
func (d *Description) Copy() *Description {
	c := *d
	c.text, c.Members = "", slices.Clone(d.Members)
	return &c
}

// Sum identifies a description by a hash of its Text. A later description has the sums of those before in its Past.
func (d *Description) Sum() string {
	sum := sha256.Sum256([]byte(d.Text()))
	return hex.EncodeToString(sum[:8])
}

// Check reports why d cannot be the description of a set; nil: it can. It runs on each description that a client reads
// from a node, and before a client proposes one.
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

// anAddress reports whether a text can be the address of a member: it is not too long, and all of it can be printed.
// Only the dialer knows whether a server is there.
func anAddress(text string) bool {
	return text != "" && len(text) <= MaxAddress && printable.Text(text) == text && !strings.ContainsAny(text, `"\`)
}

// clipped quotes a text for an error; of a longer text, the first 100 bytes.
func clipped(text string) string {
	if len(text) > 100 {
		return strconv.Quote(text[:100]) + "..."
	}
	return strconv.Quote(text)
}

// Alike reports whether two descriptions have the same members, in any order.
func (d *Description) Alike(o *Description) bool {
	return slices.Equal(slices.Sorted(slices.Values(d.Members)), slices.Sorted(slices.Values(o.Members)))
}

// Near reports whether the members of next differ from those of d by at most one, which was added or removed.
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

// Longest returns the larger of MaxTTL and Other: for so long a lock that a node has forgotten may still live.
// Quarantines, in which a node that lost data has no vote, are at least that long.
func (d *Description) Longest() time.Duration { return Milliseconds(max(d.MaxTTL, d.Other)) }

// Toward returns MaxTTL and Other for the description that follows this one on the way to the MaxTTL most, all in
// milliseconds. A call is one step: (most, 0) is the last one, and also the result if d is there already. Each description
// bounds two things: a client that counts by it counts no lock with a TTL over MaxTTL, and gives no vote to a node that lost
// its data less than Longest ago. Let a node forget a lock, and let L be the MaxTTL of the description by which that lock
// was counted: the node must stay without a vote for L. Another client may count by another description:
//
//   - By the one before. A node that granted by the later one keeps the later one, so it is no vote by the earlier one. The
//     exception is a node that was emptied since, and was told the earlier one by a client that knows no other. So Longest
//     of the earlier one must be at least L.
//   - By the next one, and by all that follow while the lock lives: Longest of each must be at least L, too.
//
// So MaxTTL grows in two steps: (10s), (10s, other 60s), (60s); and shrinks in two: (60s), (10s, other 60s), (10s). In
// between, locks live as long as both allow, and quarantines last as long as both demand. The shorter one bounds new locks
// at once. Before the last step, the client that makes the change waits (settle in change.go):
//
//   - To a longer MaxTTL, until all members keep the second description. Suppose that one member still keeps the first one,
//     another was emptied and is told the first one, and a third is away: that would be enough for a client that knows only
//     the first one to count by it, with the shorter quarantine. When all members are beyond it, each vote by the first one
//     comes from a node that was emptied since: it takes a quorum of these, while no other node answers. (BY_ALL in
//     bound.pml, docs/model)
//   - To a shorter one, until the locks are over that were counted before the second description. No client counts another
//     one by then, since a majority keeps the second. So the step may come after the longer TTL and its drift; or if enough
//     nodes to meet each quorum keep the second one, vote, and hold no lock that lives longer than the shorter one: a valid
//     lock is on one of them, and what they grant since is no vote by the first one. (WAIT there)
//
// All other steps need nothing but the majority that each change needs: with them Longest never shrinks, and MaxTTL never
// grows. That holds from any pair of bounds to any MaxTTL, so also when operators change their mind half-way.
func (d *Description) Toward(most int64) (maxTTL, other int64) {
	switch longest := max(d.MaxTTL, d.Other); {
	case most > longest:
		return d.MaxTTL, most
	case most != d.MaxTTL && longest > most:
		return most, longest
	}
	return most, 0
}

// Needs returns how many members must grant a lock: Quorum, or a majority.
func (d *Description) Needs() int {
	if d.Quorum > 0 {
		return d.Quorum
	}
	return len(d.Members)/2 + 1
}

func (d *Description) Has(member string) bool { return slices.Contains(d.Members, member) }

// A Kept is what a node keeps of its set: the description, and which of its members this node is.
type Kept struct {
	Self         string // the node's address, as the client that told it the description knows it
	*Description        // nil: the node keeps none
	Damage       error  // why the text that the node keeps is no description; nil: it keeps one, or nothing
}

// ParseKept parses what a node keeps: its own address, a newline, and a description; "": it keeps nothing. If the text
// cannot be read, the error is in Kept.Damage, and the node has no vote.
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

// ReadDescription parses a description and checks it (Check). The error says why the text is no description of a set.
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
	// The scripts match epoch and set at the beginning by a pattern, and must find the same values.
	if !strings.HasPrefix(text, fmt.Sprintf(`{"epoch":%d,"set":"%s",`, d.Epoch, d.Set)) {
		return nil, errors.New("it does not begin with its epoch and its set")
	}
	d.text = text
	return d, nil
}

// ParseDescription is ReadDescription without the reason: nil if the text is no description.
func ParseDescription(text string) *Description {
	d, _ := ReadDescription(text)
	return d
}

// Same reports whether the node keeps exactly the description d; if d is nil, whether it keeps none. Two descriptions
// of one epoch should not exist; if they do, a node that keeps the one has no vote for a client that knows the other.
func (t Kept) Same(d *Description) bool {
	return t.Description == d || t.Description != nil && d != nil && t.Set == d.Set && t.Epoch == d.Epoch && t.Text() == d.Text()
}

// Follows reports whether the node keeps d (not nil), or a later description of the same set with d's Sum in its Past.
func (t Kept) Follows(d *Description) bool {
	return t.Same(d) || t.Description != nil && t.Set == d.Set && t.Epoch > d.Epoch && slices.Contains(t.Past, d.Sum())
}

// Other reports whether the node keeps another set's description, or another one of d's set and epoch; false if none.
func (t Kept) Other(d *Description) bool {
	return t.Description != nil && (t.Set != d.Set || t.Epoch == d.Epoch && !t.Same(d))
}

// Rivals reports whether the node keeps a description by which clients may go instead of d: both are the first (epoch
// 1) of two sets with the same members, and the node's allows no TTL longer than d allows. False if it keeps none.
func (t Kept) Rivals(d *Description) bool {
	return t.Description != nil && t.Epoch == 1 && d.Epoch == 1 && t.Set != d.Set && t.Alike(d) && t.Longest() <= d.Longest()
}

// Precedes reports whether the node keeps an earlier description of the same set than d; false if it keeps none.
func (t Kept) Precedes(d *Description) bool {
	return t.Description != nil && t.Set == d.Set && t.Epoch < d.Epoch
}

// String returns what the node stores under its key, which ParseKept reads; "": it keeps no description.
func (t Kept) String() string {
	if t.Description == nil {
		return ""
	}
	return t.Self + "\n" + t.Text()
}

// At returns the epoch of the description that the node keeps; 0: it keeps none.
func (t Kept) At() int64 {
	if t.Description == nil {
		return 0
	}
	return t.Description.Epoch
}

// A Choice is the request of choose.lua: one step in choosing the next description, by ballots as in Paxos.
type Choice struct {
	Epoch  int64
	Ballot string // the rank of this choice: a node takes no description with a smaller ballot than it has promised
	Value  string // the description to take; "": the node only promises to take none of a smaller ballot
}

// ParseChosen reads the reply of choose.lua; ok is false if it has another form.
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

// A Chosen is the reply of choose.lua.
type Chosen struct {
	Kept     string // the description that the node keeps, with its address: see ParseKept
	Promised string // the largest ballot that the node has heard of
	Taken    string // the ballot of the description that the node has taken; "": none
	Value    string // that description
	Marker   string // the node's marker
	Lost     bool   // the node may have taken a description and forgotten it
}
