//go:build !race

package need

// Raced is true where the race detector watches the run.
const Raced = false
