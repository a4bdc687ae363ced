// Package ledger finds acknowledged writes that were lost. A share of a load's requests are ledger
// writes, each with a unique number.
// The client records which were acknowledged, and after the load all numbers are read back. A write
// that was acknowledged and is absent is lost.
//
//   - Book is one event loop's ledger: it numbers and encodes the writes and records their
//     outcomes. It uses neither Redis nor a clock.
//   - Audit prepares the keys, waits until the replicas are in sync, reads every key from the
//     primary and each replica, and reports missing writes.
//   - Checker runs during the load, reads a part of each key every second from the primary, and
//     reports what is missing at that moment.
//   - Sampler runs during the load, reads registers from replicas (staleness), and sends writes to
//     every node (several primaries at once).
//   - record.Ledger is the result; results of several pods can be merged.
//
// Loss is exact for the ledger's own keys, and a lower bound for all writes of the load. It does
// not verify the order of operations.
//
// Instants are nanoseconds since the run's start, as in package engine.
package ledger

// Outcome is the outcome of a ledger write.
type Outcome uint8

// The outcomes. A write that is never settled counts as Unknown.
const (
	Unknown Outcome = iota // sent, then a timeout or a broken connection: it may have been applied
	Acked                  // acknowledged by the server in time
	Failed                 // certainly not applied: an error reply, or never sent
)
