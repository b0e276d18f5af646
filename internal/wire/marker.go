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

// OtherVersion returns an UnfitError (no vote) if mark, a node's marker, has another version. Nil also if mark is no marker.
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

// A Mark is the reply of join.lua, which each new connection runs. Value is the node's marker (it names the process,
// and since when it has its data), Before the one that was found ("": none), and Now the node's time in microseconds.
type Mark struct {
	Value, Before string
	Now           int64
	ScriptOnly    bool // the user may not run the release script: so the client may not acquire by plain commands
	Kept          Kept // the description of the set that the node keeps
}

// RunID returns the run_id of the server process in mark, the text of a Marker; "" if it is none of this version.
func RunID(mark string) string {
	m, _ := ParseMarker(mark)
	return m.RunID
}

// A Hello is what a client tells a node when it joins the node (join.lua).
type Hello struct {
	Marked bool  // the node is to have a marker; false: the client does not ask nodes whether they have lost data
	Time   int64 // the client's clock, in milliseconds

	// Keep is the description that the node is to keep in the place of an earlier one of the same set. A node that
	// keeps no description stores it only if its marker is While, or if it took part in the choice of this description.
	Keep  Kept
	While string
}
