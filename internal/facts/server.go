package facts

import (
	"path"
	"strconv"
	"strings"
)

// kept is the field for the reply of probe.lua. INFO cannot have it, since its name has a colon.
const kept = "scripts:kept"

// Probed adds what probe.lua has replied: whether the server keeps scripts, or which command it lacks. An error in its
// place may come from an ACL, or from a server that loads its data: it counts only if it says that EVAL is missing.
func (f Facts) Probed(reply any, err error) {
	switch v := reply.(type) {
	case int64:
		if err == nil && v >= 0 {
			f[kept] = strconv.FormatBool(v == 0)
		}
	case string:
		if err == nil && len(v) <= mostOfValue {
			f[lacks] = v
		}
	}
	if err != nil {
		f[lacks] = Missing(err.Error())
	}
}

// vendors are other servers that speak Redis's protocol, by the field of INFO that has their own
// version. Their redis_version is that of the Redis that they are compatible with.
var vendors = []struct{ field, name string }{
	{"valkey_version", "Valkey"},
	{"redict_version", "Redict"},
	{"keydb_version", "KeyDB"},
	{"dragonfly_version", "Dragonfly"},
	{"garnet_version", "Garnet"},
	{"kvrocks_version", "Kvrocks"},
}

// Server returns the kind of server and its version, for messages.
func (f Facts) Server() string {
	for _, v := range vendors {
		if version := f[v.field]; version != "" {
			return v.name + " " + version
		}
	}
	version := f["redis_version"]
	switch {
	case version == "":
		return "a server that does not say its version (INFO server)"
	case path.Base(f["executable"]) == "keydb-server":
		return "KeyDB " + version // KeyDB has no field of its own
	}
	return "Redis " + version
}

// KeepsScripts reports whether another process than the one that was sent a script may know it, since the server saves
// or replicates scripts. known is false if the server does not say.
//
// A node shows that it is the same process as before by knowing a script whose text has the process's run_id. If
// scripts reach other processes, that proves nothing.
func (f Facts) KeepsScripts() (keeps, known bool) {
	if said, ok := f[kept]; ok {
		return said == "true", true
	}
	major, ok := f.major()
	return ok && major < leastRedis, ok
}

// leastRedis is the first version of Redis whose scripts stay in one process. Servers that were
// made from it report this version, or a later one.
const leastRedis = 7

func (f Facts) major() (n int, ok bool) {
	first, _, _ := strings.Cut(f["redis_version"], ".")
	n, err := strconv.Atoi(first)
	return n, err == nil
}

// Unsupported returns why locks on a server of this kind are not safe, and what to do; "" and "": they are safe.
func (f Facts) Unsupported() (why, todo string) {
	const instead = "use Redis 7.0 or later, Valkey or Redict"
	keeps, _ := f.KeepsScripts()
	major, known := f.major()
	switch {
	case f["dragonfly_version"] != "":
		return "which does not say which process it is (INFO run_id), so a restart cannot be recognised", instead
	case f["garnet_version"] != "":
		return "which does not run scripts atomically unless it is configured to", instead
	case f["kvrocks_version"] != "":
		return "which keeps scripts on disk and does not say which process it is (INFO run_id), so a restart cannot be recognised", instead
	case keeps:
		return "which replicates and persists scripts: a promoted replica, or the server after a restart, could grant a lock that is held", instead
	case known && major < leastRedis:
		return "and the scripts need Redis 7.0", instead
	case f["redis_version"] != "" && f["run_id"] == "":
		return "which does not say which process it is (INFO run_id), so a restart cannot be recognised", instead
	}
	return "", ""
}
