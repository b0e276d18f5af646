// Package linear checks the chaos harness's judge with a second one:
// https://github.com/anishathalye/porcupine, which knows nothing about locks. It gets the
// sequential behaviour of a lock and of a counter, and finds out whether a history can be put in an
// order that matches it.
//
//   - A name is a lock with one holder at a time. An acquisition takes effect at some moment from the
//     request to the answer; the end of validity takes effect at its instant. There is such an order if
//     and only if the judge finds no violation of the rule exclusion.
//     Where nodes lose data and clients of other libraries are there (Head.Forgetful), what the judge finds has no such
//     order, and where it finds nothing our own clients' locks have one.
//   - The resource is a counter. A holder's read and write are one operation: there is such an order if and
//     only if the judge finds no violation of the rule lost updates.
//
// This is a module of its own so that importers of redlock need not download a checker of
// histories, nor see it among their dependencies: it tests the tests. It contains only tests; run
// go test here.
//
// The histories come from a generator with a seed, with overlaps and without,
// and from the harness: each file in ../testdata/histories is one.
package linear
