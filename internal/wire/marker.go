package wire

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Marker is the content of a node's marker; see join.lua.
type Marker struct {
	RunID        string        // of the server's process
	Born, Writer int64         // when it was written, in milliseconds: by the node's clock, and by the writer's
	Longest      time.Duration // the longest TTL that a client has announced; 0: none has
	DB           string        // the number of the database; "": not known
	Epoch        int64         // of the description that the node has; 0: it is LatestEpochWithout, or an earlier one
}

// MarkerSlack is by how many milliseconds a marker may be ahead of a clock that has been right all
// the time.
const MarkerSlack = 1000

// ParseMarker reads a marker.
func ParseMarker(text string) (m Marker, ok bool) {
	var part [6]string // each extension reads one: it allocates nothing
	n := 0
	for more := true; more; n++ {
		if n == len(part) {
			return Marker{}, false
		}
		part[n], text, more = strings.Cut(text, ":")
	}
	var longest int64
	var errs [4]error
	switch n {
	case 5:
	case 6:
		m.Epoch, errs[3] = strconv.ParseInt(part[5], 10, 64)
	default:
		return Marker{}, false
	}
	m.RunID, m.DB = part[0], part[4]
	m.Born, errs[0] = strconv.ParseInt(part[1], 10, 64)
	m.Writer, errs[1] = strconv.ParseInt(part[2], 10, 64)
	longest, errs[2] = strconv.ParseInt(part[3], 10, 64)
	m.Longest = time.Duration(min(longest, 100*365*24*3600*1000)) * time.Millisecond
	return m, errors.Join(errs[:]...) == nil
}

func (m Marker) String() string {
	text := fmt.Sprintf("%s:%d:%d:%d:%s", m.RunID, m.Born, m.Writer, m.Longest.Milliseconds(), m.DB)
	if m.Epoch > 0 {
		text += fmt.Sprintf(":%d", m.Epoch)
	}
	return text
}

// Same reports whether a node that has shown both markers has kept its data in between. What its
// clients have announced meanwhile does not count, nor does its description.
func (m Marker) Same(o Marker) bool { return m.RunID == o.RunID && m.Born == o.Born && m.DB == o.DB }
