// A Seed draws numbers that depend on nothing but a seed and a name for
// what they are for. A generator that is shared gives its next number to whoever
// comes first, so a run can only be repeated if everybody comes in the same order
// again; here nobody takes anything away from another.
package sim

import "time"

// A Seed is where numbers come from: a root, or a branch for one purpose.
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
// Generators): neighbours become strangers.
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
