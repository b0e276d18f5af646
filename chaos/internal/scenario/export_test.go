package scenario

// Workloads exports workloads to tests that must be in another package.
var Workloads = workloads
