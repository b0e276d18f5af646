package script

// reserved has the keys that belong to the nodes, whatever prefix the locks have, and what
// each is: the marker, the marker of older clients, and the tables of fences. The counters
// of an older client for a lock with the key "redlock" would have the keys of those tables.
var reserved = map[string]string{
	"redlock":   "would have the tables of fences for its counters",
	Marker:      "is the key of the nodes' marker",
	OldMarker:   "is the key of the nodes' marker",
	LaterMarker: "is the key of the nodes' marker",
	Told:        "is the key of the nodes' description",
	Choice:      "is the key of the nodes' next description",
	Fences:      "is the key of the nodes' table of fences",
	Belows:      "is the key of the nodes' table of fences",
}

// Reserved says what a key is used for by the nodes; "": it is not reserved.
func Reserved(key string) string { return reserved[key] }
