package wire

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// MarkerVersion is that of the marker, and of all else that nodes keep. A node whose marker has another version is
// refused: other versions of this library may mean something else by what it keeps.
const MarkerVersion = 1

// A Marker is the content of a node's marker; see join.lua.
type Marker struct {
	RunID        string // of the server's process
	Born, Writer int64  // when it was written, in milliseconds: by the node's clock, and by the writer's
	DB           string // the number of the database; "": not known
	Epoch        int64  // of the description that the node keeps; 0: it keeps none
}

// MarkerSlack is by how many milliseconds a marker may be ahead of a clock that has been right all
// the time.
const MarkerSlack = 1000

// ParseMarker reads a marker of this version.
func ParseMarker(text string) (m Marker, ok bool) {
	var part [6]string // each extension reads one: it allocates nothing
	for i := range part {
		more := false
		if part[i], text, more = strings.Cut(text, ":"); more != (i < len(part)-1) {
			return Marker{}, false
		}
	}
	if part[0] != strconv.Itoa(MarkerVersion) {
		return Marker{}, false
	}
	var errs [3]error
	m.RunID, m.DB = part[1], part[4]
	m.Born, errs[0] = strconv.ParseInt(part[2], 10, 64)
	m.Writer, errs[1] = strconv.ParseInt(part[3], 10, 64)
	m.Epoch, errs[2] = strconv.ParseInt(part[5], 10, 64)
	return m, errors.Join(errs[:]...) == nil
}

// OtherVersion is why a node with this marker must not be used; nil: it may be.
func OtherVersion(mark string) error {
	version, _, found := strings.Cut(mark, ":")
	if n, err := strconv.ParseUint(version, 10, 32); !found || err != nil || n == MarkerVersion {
		return nil
	}
	return UnfitError(fmt.Sprintf("its marker is of version %s, and this program knows version %d: give this program a release of redlock that knows it, or other servers", version, MarkerVersion))
}

func (m Marker) String() string {
	return fmt.Sprintf("%d:%s:%d:%d:%s:%d", MarkerVersion, m.RunID, m.Born, m.Writer, m.DB, m.Epoch)
}

// Same reports whether a node that has shown both markers has kept its data in between. Writer does
// not count, nor does the description.
func (m Marker) Same(o Marker) bool { return m.RunID == o.RunID && m.Born == o.Born && m.DB == o.DB }
