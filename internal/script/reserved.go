package script

import "strings"

// reserved has the keys of the nodes themselves, which no lock may have, and what each is, for errors.
var reserved = map[string]string{
	Marker: "is the key of the nodes' marker",
	Told:   "is the key of the nodes' description",
	Choice: "is the key of the nodes' next description",
	Fences: "is the key of the nodes' table of fences",
	Belows: "is the key of the nodes' table of fences",
}

// Reserved says what a node uses a key for, in words that follow the key in an error; "": a lock may have the key.
func Reserved(key string) string {
	if strings.HasPrefix(key, Broken) {
		return "is a key by which the nodes note a token that is broken"
	}
	return reserved[key]
}
