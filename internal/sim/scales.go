package sim

// Scales is a Host that measures what a Locker has in memory. When the Locker has its lanes, it
// calls Weigh with a function that gives the number of requests that each lane keeps.
type Scales interface{ Weigh(lanes func() []int) }
