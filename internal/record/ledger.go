package record

import (
	"cmp"
	"slices"
)

// Ledger is what became of a run's ledger writes. It is exact for them, and a lower bound for everything the load wrote.
type Ledger struct {
	Acked   uint64 `json:"acked"`   // acknowledged ledger writes
	Failed  uint64 `json:"failed"`  // surely not applied
	Unknown uint64 `json:"unknown"` // sent, and never answered in time

	UnknownPresent uint64 `json:"unknownPresent,omitempty"` // of Unknown, those that the read found: legal
	FailedPresent  uint64 `json:"failedPresent,omitempty"`  // of Failed, those that the read found: the server said no and did it

	Lost      uint64 `json:"lost"`                // acknowledged, and absent at the primary
	FirstLost int64  `json:"firstLost,omitempty"` // when the first of these was acknowledged, at the earliest; 0 where Lost is 0
	LastLost  int64  `json:"lastLost,omitempty"`  // and the last, at the latest
	Errors    uint64 `json:"errors,omitempty"`    // requests not answered well during Losses, ledger writes or not: about so many
	Losses    []Loss `json:"losses,omitempty"`    // the lost writes by when they were acknowledged, ascending

	ReplicaMissing uint64 `json:"replicaMissing,omitempty"` // acknowledged and present at the primary, yet absent at a replica in step; the worst replica
	Replicas       int    `json:"replicas"`                 // replicas that were read
	Evicted        uint64 `json:"evicted,omitempty"`        // keys that the servers evicted during the run: already taken off Lost, as they may be ledger keys
	Unique         bool   `json:"unique,omitempty"`         // keys instead of bits

	Stale *Staleness   `json:"stale,omitempty"` // where it was asked for
	Dual  *DualPrimary `json:"dual,omitempty"`  // where it was asked for

	Settings string   `json:"settings,omitempty"` // what the primary said of its persistence and limits
	Notes    []string `json:"notes,omitempty"`    // sentences for people
	// Unread says why the ledger, or a part of it, could not be read back: then Lost is no figure at all. "" = all was read.
	Unread string `json:"unread,omitempty"`
}

// Loss is a stretch of lost writes; between two of them lies a second or more without one.
type Loss struct {
	First  int64  `json:"first"` // as FirstLost and LastLost
	Last   int64  `json:"last"`
	Count  uint64 `json:"count"`
	Errors uint64 `json:"errors,omitempty"`
}

// Staleness is how far replicas were behind their primary, as a client that reads from them sees it.
type Staleness struct {
	Reads        uint64 `json:"reads"`                  // answers from replicas
	Stale        uint64 `json:"stale"`                  // of these, older than a write acknowledged before the read was sent
	MaxWrites    uint64 `json:"maxWrites,omitempty"`    // the most acknowledged writes that an answer lacked
	MaxBehind    int64  `json:"maxBehind,omitempty"`    // the longest time since the oldest of these was acknowledged, in ns
	NonMonotonic uint64 `json:"nonMonotonic,omitempty"` // answers older than one that the same node gave before
	RolledBack   uint64 `json:"rolledBack,omitempty"`   // answers of the primary older than an acknowledged write
}

// DualPrimary is whether two nodes of one shard took writes at the same time.
type DualPrimary struct {
	Writes uint64 `json:"writes"`          // taken by a node while another one of the shard took them, too
	First  int64  `json:"first,omitempty"` // instant of the first of them; 0 where there was none
	Last   int64  `json:"last,omitempty"`  // and of the last
}

// Unknowable says why nothing can be said of lost writes, "" where Lost is a figure.
func (r *Ledger) Unknowable() string {
	if r.Unread == "" && r.Acked == 0 {
		return "not one ledger write was acknowledged: there is nothing that could have been lost"
	}
	return r.Unread
}

// maxNotes bounds a Ledger's sentences.
const maxNotes = 16

// AddNote adds a sentence once.
func (r *Ledger) AddNote(sentence string) {
	if len(r.Notes) < maxNotes && !slices.Contains(r.Notes, sentence) {
		r.Notes = append(r.Notes, sentence)
	}
}

// MergeLedgers adds up the results of a run's pods, in any order; nil ones are passed over, and nil is returned where there is no other.
func MergeLedgers(results ...*Ledger) *Ledger {
	var sum *Ledger
	for _, r := range results {
		switch {
		case r == nil:
		case sum == nil:
			sum = r.clone()
		default:
			sum.add(r)
		}
	}
	return sum
}

func (r *Ledger) clone() *Ledger {
	c := *r
	c.Notes, c.Losses = slices.Clone(r.Notes), slices.Clone(r.Losses)
	if r.Stale != nil {
		stale := *r.Stale
		c.Stale = &stale
	}
	if r.Dual != nil {
		dual := *r.Dual
		c.Dual = &dual
	}
	return &c
}

func (r *Ledger) add(o *Ledger) {
	r.FirstLost, r.LastLost = JoinWindows(r.Lost, r.FirstLost, r.LastLost, o.Lost, o.FirstLost, o.LastLost)
	r.Acked += o.Acked
	r.Failed += o.Failed
	r.Unknown += o.Unknown
	r.UnknownPresent += o.UnknownPresent
	r.FailedPresent += o.FailedPresent
	r.Lost += o.Lost
	r.Errors += o.Errors
	r.Losses = JoinLosses(append(r.Losses, o.Losses...))
	r.ReplicaMissing += o.ReplicaMissing
	r.Replicas = max(r.Replicas, o.Replicas)
	r.Evicted = max(r.Evicted, o.Evicted) // every pod reads the same servers' counters
	r.Unique = r.Unique || o.Unique
	if o.Stale != nil {
		if r.Stale == nil {
			r.Stale = &Staleness{}
		}
		r.Stale.add(o.Stale)
	}
	if o.Dual != nil {
		if r.Dual == nil {
			r.Dual = &DualPrimary{}
		}
		r.Dual.First, r.Dual.Last = JoinWindows(r.Dual.Writes, r.Dual.First, r.Dual.Last, o.Dual.Writes, o.Dual.First, o.Dual.Last)
		r.Dual.Writes += o.Dual.Writes
	}
	r.Settings = max(r.Settings, o.Settings) // one of them, whatever the order
	r.Unread = max(r.Unread, o.Unread)
	r.Notes = append(r.Notes, o.Notes...)
	slices.Sort(r.Notes)
	r.Notes = slices.Compact(r.Notes)
	r.Notes = r.Notes[:min(len(r.Notes), maxNotes)]
}

const (
	// LossesApart is how far two stretches of lost writes lie apart at least, in ns.
	LossesApart = 1_000_000_000
	// MaxLosses bounds their number: where there are more, those that lie closest are joined.
	MaxLosses = 32
)

// JoinLosses sorts stretches and joins those that lie close together.
func JoinLosses(all []Loss) []Loss {
	slices.SortFunc(all, func(a, b Loss) int { return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.Last, b.Last)) })
	for apart := int64(LossesApart); ; apart *= 2 {
		joined := all[:0:0]
		for _, l := range all {
			if n := len(joined); n > 0 && l.First-joined[n-1].Last < apart {
				last := &joined[n-1]
				last.Last = max(last.Last, l.Last)
				last.Count += l.Count
				last.Errors += l.Errors
			} else {
				joined = append(joined, l)
			}
		}
		if len(joined) <= MaxLosses {
			return joined
		}
	}
}

// JoinWindows is the smallest window that holds both, where a window counts only with something in it.
func JoinWindows(countA uint64, firstA, lastA int64, countB uint64, firstB, lastB int64) (first, last int64) {
	switch {
	case countA == 0:
		return firstB, lastB
	case countB == 0:
		return firstA, lastA
	}
	return min(firstA, firstB), max(lastA, lastB)
}

func (s *Staleness) add(o *Staleness) {
	s.Reads += o.Reads
	s.Stale += o.Stale
	s.MaxWrites = max(s.MaxWrites, o.MaxWrites)
	s.MaxBehind = max(s.MaxBehind, o.MaxBehind)
	s.NonMonotonic += o.NonMonotonic
	s.RolledBack += o.RolledBack
}
