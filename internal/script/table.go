package script

import "strconv"

// The numbers of fences are in a table of counters on each node, and not in a counter for
// each name: names come and go, and a counter that went with them would have to be
// remembered for as long as a clock may be wrong. A name's counter is one of so many, its
// bucket, and those that it shares with other names make its numbers larger, and nothing
// else.
//
// The table is two sorted sets, which have no TTL: the members are the buckets, and the
// scores are the numbers. Fences has the numbers of those who hold a key, Belows of those
// who hold something below it. The bucket of a key is a fixed hash of all of it, with the
// prefix, or a key that two prefixes reach would have two. Number of buckets and hash are
// part of the protocol: all clients must have the same.
const (
	Fences  = "redlock:fence"
	Belows  = "redlock:below"
	Buckets = 4096
)

// buckets are their names.
var buckets = func() (all [Buckets]string) {
	for i := range all {
		all[i] = strconv.Itoa(i)
	}
	return all
}()

// Bucket is that of a key: FNV-1a, of 32 bits, modulo Buckets. It is a pointer, and the
// hash is not that of hash/fnv, so that nothing is allocated.
func Bucket(key string) *string {
	hash := uint32(2166136261)
	for i := range len(key) {
		hash = (hash ^ uint32(key[i])) * 16777619
	}
	return &buckets[hash%Buckets]
}
