// Package ledger finds acknowledged writes that were lost. A share of a load's requests are ledger writes, each with a number of its own;
// the client remembers which were acknowledged, and after the load every number is read back. Acknowledged and absent is lost.
//
//   - Book is one event loop's ledger: it numbers and encodes the writes and remembers their outcomes. No Redis, no clock.
//   - Audit prepares the keys, waits until the replicas are in step, reads every key at the primary and at each replica, and says what is missing.
//   - Sampler, beside the load, reads registers from replicas (staleness), and offers writes to every node (two primaries at once).
//   - Result is what came of it; results of several pods merge.
//
// Loss is exact for the ledger's own keys, and a lower bound for all that the load wrote. It proves nothing about the order of operations.
//
// Instants are nanoseconds since the run's start, as in package engine.
package ledger

// Outcome is how a ledger write ended.
type Outcome uint8

// The outcomes. A write that is never settled counts as Unknown.
const (
	Unknown Outcome = iota // sent, then a timeout or a broken connection: it may have been applied
	Acked                  // the server answered well, in time
	Failed                 // surely not applied: an error reply, or never sent
)
