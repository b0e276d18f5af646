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
}

// MarkerSlack is by how many milliseconds a marker may be ahead of a clock that has been right all
// the time.
const MarkerSlack = 1000

// ParseMarker reads a marker.
func ParseMarker(text string) (m Marker, ok bool) {
	part := strings.Split(text, ":")
	if len(part) != 5 {
		return Marker{}, false
	}
	var longest int64
	var errs [3]error
	m.RunID, m.DB = part[0], part[4]
	m.Born, errs[0] = strconv.ParseInt(part[1], 10, 64)
	m.Writer, errs[1] = strconv.ParseInt(part[2], 10, 64)
	longest, errs[2] = strconv.ParseInt(part[3], 10, 64)
	m.Longest = time.Duration(min(longest, 100*365*24*3600*1000)) * time.Millisecond
	return m, errors.Join(errs[:]...) == nil
}

func (m Marker) String() string {
	return fmt.Sprintf("%s:%d:%d:%d:%s", m.RunID, m.Born, m.Writer, m.Longest.Milliseconds(), m.DB)
}

// Same reports whether a node that has shown both markers has kept its data in between. What its
// clients have announced meanwhile does not count.
func (m Marker) Same(o Marker) bool { return m.RunID == o.RunID && m.Born == o.Born && m.DB == o.DB }
