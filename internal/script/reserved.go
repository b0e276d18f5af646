package script

// reserved are the keys that are the nodes' own, whatever prefix the locks have, and what
// each is: their marker, that of older clients, and the tables of the fences. The counters
// that an older client has for a lock with the key redlock would be those tables.
var reserved = map[string]string{
	"redlock": "would have the tables of fences for its counters",
	Marker:    "is the key of the nodes' marker",
	OldMarker: "is the key of the nodes' marker",
	Fences:    "is the key of the nodes' table of fences",
	Belows:    "is the key of the nodes' table of fences",
}

// Reserved says what a key is to the nodes; "": nothing.
func Reserved(key string) string { return reserved[key] }
