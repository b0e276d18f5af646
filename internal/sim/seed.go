package sim

import "time"

// A Seed gives random numbers that depend on nothing but the seed and the names of the branches:
// a Seed is a root, or a branch for one purpose. A shared generator gives its next number to the
// goroutine that comes first, so a run can only be repeated if all come in the same order again.
// Branches of a Seed do not influence each other.
type Seed uint64

// Of is the n-th branch of s.
func (s Seed) Of(n int) Seed { return mix(s ^ mix(Seed(n)+1)) }

// For is the branch of s with a name.
func (s Seed) For(name string) Seed {
	h := Seed(14695981039346656037) // FNV-1a
	for i := range len(name) {
		h = (h ^ Seed(name[i])) * 1099511628211
	}
	return mix(s ^ mix(h))
}

// mix is splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
// Generators): similar inputs give unrelated outputs.
func mix(x Seed) Seed {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Float is a number from 0 to 1, without the 1.
func (s Seed) Float() float64 { return float64(mix(s)>>11) / (1 << 53) }

// Below is a duration from 0 to d, without d; 0 if there is none.
func (s Seed) Below(d time.Duration) time.Duration { return time.Duration(s.Float() * float64(d)) }

// OneIn is true once in n times.
func (s Seed) OneIn(n int) bool { return s.Float()*float64(n) < 1 }
