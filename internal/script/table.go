package script

import "strconv"

// The fences (fencing tokens) of all names are in one table of counters on each node. A counter for each name would not
// do: names come and go, and a counter that went with its name would have to be remembered for as long as a clock may
// be wrong. The table has Buckets counters, and each name has one of them, its bucket. Names that share a bucket make
// each other's fences larger, and have no other effect.
//
// The table is two sorted sets without a TTL: the members are the buckets, and the scores are the fences. Fences has
// those of locks on a key, Belows those of locks on something below the key. The bucket of a key is a fixed hash of the
// whole key, prefix included: otherwise a key that two prefixes reach would have two buckets. The number of buckets and
// the hash are part of the protocol: all clients must have the same.
const (
	Fences  = "redlock:fence"
	Belows  = "redlock:below"
	Buckets = 4096
)

// buckets has the names of the buckets: their numbers as text.
var buckets = func() (all [Buckets]string) {
	for i := range all {
		all[i] = strconv.Itoa(i)
	}
	return all
}()

// Bucket returns the name of a key's bucket: of the counter of fences that the key shares with others. The caller must
// not change it. It is a pointer, so that a caller that passes it on allocates nothing.
func Bucket(key string) *string { return &buckets[Hash(key)%Buckets] }

// Hash returns the 32-bit FNV-1a hash of a key. Unlike hash/fnv, it allocates nothing.
func Hash(key string) uint32 {
	hash := uint32(2166136261)
	for i := range len(key) {
		hash = (hash ^ uint32(key[i])) * 16777619
	}
	return hash
}
