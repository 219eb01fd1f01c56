// Package limit is rate limits (spec/03 §5): so many requests of a caller in each window,
// which begins with the first of them.
//
// A Rule says how many; a Count is what is kept of one caller; an Answer is whether a
// request may go on and what its caller is told. That arithmetic is pure. A [Counter]
// counts in the store, so that several gateways count together. Every request counts, also
// one that is refused afterwards for another reason.
//
// It promises that no more than twice the limit pass in any stretch as long as a window,
// and no more than the limit in a window, also through several gateways at one moment. A
// request that could not be counted is an error, not let through. A power cut, or a crash
// of PostgreSQL's server, may forget the last counts; a crash of the program forgets none.
//
// It refuses to know HTTP, and the texts of refusals; the headers' values are here, since
// they are the arithmetic's. The store gets a digest of who the caller is, not the name.
// Counts whose window is long over are removed by whoever removes what is over
// (session.Service.Retain). Hostile input: the parts of a Key.
package limit
