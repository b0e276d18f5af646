package sim

// Scales is a Host that wants to know what a Locker has in memory: Weigh gets, when the
// Locker has its lanes, what says how many requests each of them keeps.
type Scales interface{ Weigh(lanes func() []int) }
