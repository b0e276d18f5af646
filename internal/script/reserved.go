package script

import "strings"

// reserved has the keys that belong to the nodes, whatever prefix the locks have, and what each is.
var reserved = map[string]string{
	Marker: "is the key of the nodes' marker",
	Told:   "is the key of the nodes' description",
	Choice: "is the key of the nodes' next description",
	Fences: "is the key of the nodes' table of fences",
	Belows: "is the key of the nodes' table of fences",
}

// Reserved says what a key is used for by the nodes; "": it is not reserved.
func Reserved(key string) string {
	if strings.HasPrefix(key, Broken) {
		return "is a key by which the nodes note a token that is broken"
	}
	return reserved[key]
}
