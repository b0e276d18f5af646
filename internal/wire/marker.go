package wire

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// MarkerVersion is the version of the marker, and of all else that nodes keep. A client refuses a node whose marker has
// another version: other versions of this library may mean something else by what the node keeps.
const MarkerVersion = 1

// A Marker is the content of the key redlock:marker of a node. It names the server process, and since when the node has
// its data: a node that restarts or loses data gets another one (join.lua).
type Marker struct {
	RunID        string // the run_id of the server process
	Born, Writer int64  // when it was written, in milliseconds: by the node's clock, and by the clock of the client that wrote it
	DB           string // the number of the database; "": not known
	Epoch        int64  // of the description that the node keeps; 0: it keeps none
}

// MarkerSlack is by how many milliseconds a clock may be behind a marker's time before it counts as set back.
const MarkerSlack = 1000

// ParseMarker reads a marker of this version; ok is false for any other text.
func ParseMarker(text string) (m Marker, ok bool) {
	var part [6]string // each extension reads a marker: so this must allocate nothing
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

// OtherVersion returns an UnfitError if a node's marker (see Marker) has another version; nil for this one, or none.
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

// Same reports whether a node that has shown both markers has kept its data in between. Writer and Epoch may differ:
// join.lua corrects them without a loss of data.
func (m Marker) Same(o Marker) bool { return m.RunID == o.RunID && m.Born == o.Born && m.DB == o.DB }
