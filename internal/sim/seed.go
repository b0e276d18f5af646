package sim

import "time"

// A Seed gives random numbers that depend on nothing but the root seed and the names of the branches from it to this
// one. A shared generator would give its next number to the goroutine that comes first, so a run could only be repeated
// if all came in the same order again. Branches do not influence each other.
type Seed uint64

// Of returns the branch of s with number n: another Seed, the same for each call.
func (s Seed) Of(n int) Seed { return mix(s ^ mix(Seed(n)+1)) }

// For returns the branch of s with this name: another Seed, the same for each call.
func (s Seed) For(name string) Seed {
	h := Seed(14695981039346656037) // FNV-1a
	for i := range len(name) {
		h = (h ^ Seed(name[i])) * 1099511628211
	}
	return mix(s ^ mix(h))
}

// mix returns x scrambled by splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators).
func mix(x Seed) Seed {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Float returns a number from 0 up to, and without, 1. It is the same for each call.
func (s Seed) Float() float64 { return float64(mix(s)>>11) / (1 << 53) }

// Below returns a duration from 0 up to, and without, d; 0 if d is 0. It is the same for each call.
func (s Seed) Below(d time.Duration) time.Duration { return time.Duration(s.Float() * float64(d)) }

// OneIn returns true for one in n seeds, on average. It is the same for each call.
func (s Seed) OneIn(n int) bool { return s.Float()*float64(n) < 1 }
