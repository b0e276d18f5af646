package scenario

// Workloads are for tests in other packages, which cannot be in this one.
var Workloads = workloads
