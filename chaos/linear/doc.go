// Package linear asks a second opinion of the chaos harness's judge: that of
// https://github.com/anishathalye/porcupine, which knows nothing of locks. It is
// told what a lock and a counter do when no other client is there, and finds out
// whether a history can be put in an order in which they did just that.
//
//   - A name is a lock that one can have at a time. To acquire it is an operation
//     that takes effect at some moment from the question to the answer; the end of
//     validity is one that takes effect at its instant. There is such an order if
//     and only if the judge finds no violation of the rule exclusion.
//   - The resource is a counter. What a holder does to it is one operation, from
//     the read to the write: there is such an order if and only if the judge finds
//     no violation of the rule lost updates.
//
// This is a module of its own so that importers of redlock need not download
// a checker of histories, nor see it among their dependencies: it is for tests
// of tests. There is nothing in it but those; run go test here.
//
// The histories come from a generator with a seed, with overlaps and without,
// and from the harness: each file in ../testdata/histories is one.
package linear
