package memredis

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2/server"
)

// version is the Redis whose commands miniredis follows.
const version = "7.2.4"

// Info answers the INFO command, so that a miniredis can be mistaken for a real
// server by those who look at its identity and settings. Any field can be
// overridden, to let a node pretend to be a replica, to evict keys, or to be
// another node under a second address.
type Info struct {
	keys func() map[int]int // how many keys each database has that has some; nil: none has any

	mu       sync.Mutex // protects what follows
	port     int
	runID    string
	started  time.Time
	override map[string]string
}

// NewInfo describes a server that has just been started on port.
func NewInfo(port int) *Info {
	i := &Info{port: port, override: map[string]string{}}
	i.Renew()
	return i
}

// RunID is that of this run.
func (i *Info) RunID() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.runID
}

// Renew is a restart: a new run_id, and an uptime from zero. Overrides stay: they
// are what the node pretends, not what it is.
func (i *Info) Renew() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.runID = runID()
	i.started = time.Now()
}

// Set overrides one field; an empty value removes the override. A field that is
// not in the table below belongs to no section and is added to every answer.
func (i *Info) Set(field, value string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if value == "" {
		delete(i.override, field)
		return
	}
	i.override[field] = value
}

// Hook is to be given to [server.Server.SetPreHook], which runs it before every
// command. It runs before miniredis looks at AUTH and MULTI, so a node with a
// password tells its INFO to everybody, and INFO is not queued in a transaction.
func (i *Info) Hook(peer *server.Peer, cmd string, args ...string) bool {
	if cmd != "INFO" {
		return false
	}
	peer.WriteBulk(i.Text(args...))
	return true
}

// Text is the answer to INFO with these arguments: all sections if there are
// none, and silence about unknown ones, as real servers do.
func (i *Info) Text(sections ...string) string {
	keys := map[int]int{}
	if i.keys != nil && asked("keyspace", sections) {
		keys = i.keys() // not under the mutex
	}
	i.mu.Lock()
	defer i.mu.Unlock()

	extra := maps.Clone(i.override)
	var b strings.Builder
	table := i.table()
	keyspace := infoSection{name: "Keyspace"}
	for _, db := range slices.Sorted(maps.Keys(keys)) {
		keyspace.fields = append(keyspace.fields, infoField{fmt.Sprintf("db%d", db), fmt.Sprintf("keys=%d,expires=0,avg_ttl=0", keys[db])})
	}
	for _, section := range append(table, keyspace) {
		wanted := asked(section.name, sections)
		if wanted {
			if b.Len() > 0 {
				b.WriteString("\r\n")
			}
			fmt.Fprintf(&b, "# %s\r\n", section.name)
		}
		for _, f := range section.fields {
			value := f.value
			if v, ok := i.override[f.name]; ok {
				value = v
				delete(extra, f.name)
			}
			if wanted {
				fmt.Fprintf(&b, "%s:%s\r\n", f.name, value)
			}
		}
	}
	for _, field := range slices.Sorted(maps.Keys(extra)) {
		fmt.Fprintf(&b, "%s:%s\r\n", field, extra[field])
	}
	return b.String()
}

func asked(section string, wanted []string) bool {
	if len(wanted) == 0 {
		return true
	}
	for _, w := range wanted {
		switch strings.ToLower(w) {
		case strings.ToLower(section), "all", "default", "everything":
			return true
		}
	}
	return false
}

type (
	infoSection struct {
		name   string
		fields []infoField
	}
	infoField struct{ name, value string }
)

// table has the fields in the order in which Redis prints them. The caller
// holds the mutex.
func (i *Info) table() []infoSection {
	uptime := int64(time.Since(i.started) / time.Second)
	return []infoSection{
		{"Server", []infoField{
			{"redis_version", version},
			{"redis_mode", "standalone"},
			{"process_id", strconv.Itoa(os.Getpid())},
			{"run_id", i.runID},
			{"tcp_port", strconv.Itoa(i.port)},
			{"uptime_in_seconds", strconv.FormatInt(uptime, 10)},
			{"uptime_in_days", strconv.FormatInt(uptime/86400, 10)},
		}},
		{"Memory", []infoField{
			{"maxmemory", "0"},
			{"maxmemory_policy", "noeviction"},
		}},
		{"Persistence", []infoField{
			{"loading", "0"},
			{"aof_enabled", "0"},
		}},
		{"Stats", []infoField{
			{"evicted_keys", "0"},
		}},
		{"Replication", []infoField{
			{"role", "master"},
			{"connected_slaves", "0"},
		}},
		{"Cluster", []infoField{
			{"cluster_enabled", "0"},
		}},
	}
}

// runID is 40 hexadecimal digits, like that of a real server.
func runID() string {
	var id [20]byte
	_, _ = rand.Read(id[:]) // never fails: crypto/rand ends the program instead
	return hex.EncodeToString(id[:])
}
