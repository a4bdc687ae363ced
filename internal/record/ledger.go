package record

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/redquake/redquake/internal/record/codec"
)

// Ledger is the verification result of a run's ledger writes. It is exact for them, and a lower
// bound for all writes of the load.
type Ledger struct {
	Acked   uint64 `json:"acked"`   // acknowledged ledger writes
	Failed  uint64 `json:"failed"`  // certainly not applied
	Unknown uint64 `json:"unknown"` // sent, without a reply in time

	// of Unknown, those found by the read, which is legitimate
	UnknownPresent uint64 `json:"unknownPresent,omitempty"`
	// of Failed, those found by the read: the server rejected and applied them
	FailedPresent uint64 `json:"failedPresent,omitempty"`
	// executed more than once; nil if the servers did not count that, as they do for client libraries
	ExecutedTwice *uint64 `json:"executedTwice,omitempty"`

	// acknowledged, but absent at the primary; see LostAtLeast
	Lost uint64 `json:"lost"`
	// earliest time at which the first of these was acknowledged; 0 if Lost is 0
	FirstLost int64 `json:"firstLost,omitempty"`
	// latest time at which the last of these was acknowledged
	LastLost int64 `json:"lastLost,omitempty"`
	// approximate number of requests without success during Losses, including other requests than
	// ledger writes
	Errors uint64 `json:"errors,omitempty"`
	// the lost writes by the time of their acknowledgement, ascending
	Losses []Loss `json:"losses,omitempty"`

	// acknowledged and present at the primary, but absent at a replica that is in sync; the worst
	// replica
	ReplicaMissing uint64 `json:"replicaMissing,omitempty"`
	Replicas       int    `json:"replicas"`         // replicas that were read
	Unique         bool   `json:"unique,omitempty"` // keys instead of bits
	// Evictions are the server processes, by run_id, that evicted keys during the run which may be
	// ledger keys, or may have.
	Evictions map[string]Evictions `json:"evictions,omitempty"`

	Stale *Staleness   `json:"stale,omitempty"` // if it was enabled
	Dual  *DualPrimary `json:"dual,omitempty"`  // if it was enabled

	// persistence settings and limits of the primaries, each with its address if they differ
	Settings string   `json:"settings,omitempty"`
	Notes    []string `json:"notes,omitempty"` // human-readable
	// Unread is why the ledger, or a part of it, could not be read back; Lost is not valid then. "" =
	// all of it was read.
	Unread string `json:"unread,omitempty"`
}

// Loss is a period of lost writes: a second or more without a lost write, or another event that
// lost them, is between it and the next one.
type Loss struct {
	First  int64  `json:"first"` // as FirstLost and LastLost
	Last   int64  `json:"last"`
	Count  uint64 `json:"count"`
	Errors uint64 `json:"errors,omitempty"`
	// They were lost after After, when the last of them was acknowledged at the earliest, and until
	// Until, when the next write after them was acknowledged at the latest that was kept; 0 = none
	// was.
	After int64 `json:"after"`
	Until int64 `json:"until,omitempty"`
}

// lostUntil is Until as an instant.
func (l *Loss) lostUntil() int64 {
	if l.Until == 0 {
		return math.MaxInt64
	}
	return l.Until
}

// With is one event's loss that contains both; ok is false if no single instant is between the
// writes that both lost and those that both kept.
func (l Loss) With(o Loss) (joined Loss, ok bool) {
	joined = Loss{
		First:  min(l.First, o.First),
		Last:   max(l.Last, o.Last),
		Count:  l.Count + o.Count,
		Errors: l.Errors + o.Errors,
		After:  max(l.After, o.After),
		Until:  min(l.lostUntil(), o.lostUntil()),
	}
	if ok = joined.After <= joined.Until; !ok {
		joined.After = min(l.After, o.After)
		joined.Until = max(l.lostUntil(), o.lostUntil())
	}
	if joined.Until == math.MaxInt64 {
		joined.Until = 0
	}
	return joined, ok
}

// Staleness is how far replicas were behind their primary, from the perspective of a client that
// reads from them.
type Staleness struct {
	Reads uint64 `json:"reads"` // replies from replicas
	// of these, older than a write acknowledged before the read was sent
	Stale uint64 `json:"stale"`
	// the maximum number of acknowledged writes that a reply lacked
	MaxWrites uint64 `json:"maxWrites,omitempty"`
	// the longest time since the oldest of these was acknowledged, in ns
	MaxBehind int64 `json:"maxBehind,omitempty"`
	// replies older than a previous one of the same node
	NonMonotonic uint64 `json:"nonMonotonic,omitempty"`
	// replies of the primary older than an acknowledged write
	RolledBack uint64 `json:"rolledBack,omitempty"`
}

// DualPrimary reports whether two nodes of one shard accepted writes at the same time.
type DualPrimary struct {
	// accepted by a node while another node of the shard accepted writes, too
	Writes uint64 `json:"writes"`
	First  int64  `json:"first,omitempty"` // instant of the first of them; 0 if there was none
	Last   int64  `json:"last,omitempty"`  // and of the last
}

// Unknowable is why the number of lost writes is not known; "" if Lost is valid.
func (r *Ledger) Unknowable() string {
	if r.Unread == "" && r.Acked == 0 {
		return "no ledger write was acknowledged, so none can have been lost"
	}
	return r.Unread
}

// maxNotes bounds the notes of a Ledger.
const maxNotes = 16

// AddNote adds a note unless it is already there.
func (r *Ledger) AddNote(sentence string) {
	if len(r.Notes) < maxNotes && !slices.Contains(r.Notes, sentence) {
		r.Notes = append(r.Notes, sentence)
	}
}

// MergeLedgers adds up the results of a run's pods, in any order. It ignores nil, and returns nil
// if all are nil.
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
	c.Notes = slices.Clone(r.Notes)
	c.Losses = slices.Clone(r.Losses)
	c.Evictions = maps.Clone(r.Evictions)
	if r.Stale != nil {
		stale := *r.Stale
		c.Stale = &stale
	}
	if r.Dual != nil {
		dual := *r.Dual
		c.Dual = &dual
	}
	if r.ExecutedTwice != nil {
		c.ExecutedTwice = new(*r.ExecutedTwice)
	}
	return &c
}

// CountExecuted adds writes that were executed more than once.
func (r *Ledger) CountExecuted(twice uint64) {
	if r.ExecutedTwice != nil {
		twice += *r.ExecutedTwice
	}
	r.ExecutedTwice = &twice
}

func (r *Ledger) add(o *Ledger) {
	r.FirstLost, r.LastLost = JoinWindows(r.Lost, r.FirstLost, r.LastLost, o.Lost, o.FirstLost,
		o.LastLost)
	r.Acked += o.Acked
	r.Failed += o.Failed
	r.Unknown += o.Unknown
	r.UnknownPresent += o.UnknownPresent
	r.FailedPresent += o.FailedPresent
	if o.ExecutedTwice != nil {
		r.CountExecuted(*o.ExecutedTwice)
	}
	r.Lost += o.Lost
	r.Errors += o.Errors
	r.Losses = JoinLosses(append(r.Losses, o.Losses...))
	r.ReplicaMissing += o.ReplicaMissing
	r.Replicas = max(r.Replicas, o.Replicas)
	r.Unique = r.Unique || o.Unique
	r.Evictions = MergeEvictions(r.Evictions, o.Evictions)
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
		r.Dual.First, r.Dual.Last = JoinWindows(r.Dual.Writes, r.Dual.First, r.Dual.Last, o.Dual.Writes,
			o.Dual.First, o.Dual.Last)
		r.Dual.Writes += o.Dual.Writes
	}
	r.Settings = max(r.Settings, o.Settings) // one of them, independently of the order
	r.Unread = max(r.Unread, o.Unread)
	r.Notes = append(r.Notes, o.Notes...)
	slices.Sort(r.Notes)
	r.Notes = slices.Compact(r.Notes)
	r.Notes = r.Notes[:min(len(r.Notes), maxNotes)]
}

const (
	// LossesApart is the minimum distance between two periods of lost writes, in ns.
	LossesApart = 1_000_000_000
	// MaxLosses bounds their number: if there are more, the closest ones are joined.
	MaxLosses = 32
)

// JoinLosses sorts periods of lost writes and joins those that are close together and may be of one
// event. If they are too many, the closest ones are joined whatever they are of.
func JoinLosses(all []Loss) []Loss {
	slices.SortFunc(all, func(a, b Loss) int {
		return cmp.Or(cmp.Compare(a.After, b.After), cmp.Compare(a.First, b.First),
			cmp.Compare(a.Last, b.Last))
	})
	for apart := int64(LossesApart); ; apart *= 2 {
		joined := all[:0:0]
		for _, l := range all {
			n := len(joined)
			if n > 0 && l.First-joined[n-1].Last < apart {
				both, one := joined[n-1].With(l)
				if one || apart > LossesApart {
					joined[n-1] = both
					continue
				}
			}
			joined = append(joined, l)
		}
		if len(joined) <= MaxLosses {
			slices.SortStableFunc(joined, func(a, b Loss) int {
				return cmp.Or(cmp.Compare(a.First, b.First),
					cmp.Compare(a.Last, b.Last))
			})
			return joined
		}
	}
}

// JoinWindows is the smallest window that contains both; a window with count 0 is ignored.
func JoinWindows(
	countA uint64, firstA, lastA int64, countB uint64, firstB, lastB int64,
) (first, last int64) {
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

// Evictions are the keys that one server process evicted during the run and that may have been
// ledger keys.
type Evictions struct {
	Keys uint64 `json:"keys,omitempty"`
	// it was read after the load. Otherwise it may have evicted more than Keys
	Final bool `json:"final,omitempty"`
}

// maxEvicting bounds the processes in Ledger.Evictions. If there are more, one entry without a
// run_id, which is not final, replaces them.
const maxEvicting = 64

// MergeEvictions merges what two pods read from the same servers, in any order.
func MergeEvictions(a, b map[string]Evictions) map[string]Evictions {
	if len(a)+len(b) == 0 {
		return nil
	}
	all := make(map[string]Evictions, len(a)+len(b))
	for _, side := range []map[string]Evictions{a, b} {
		for id, e := range side {
			all[id] = Evictions{Keys: max(all[id].Keys, e.Keys), Final: all[id].Final || e.Final}
		}
	}
	if _, many := all[""]; many || len(all) > maxEvicting {
		return map[string]Evictions{"": {}}
	}
	return all
}

// LostAtLeast is the lower bound of the lost writes; Lost is the upper one. They differ if absent
// writes may have been evicted: each evicted key may be a write, or a bitmap with many.
func (r *Ledger) LostAtLeast() uint64 {
	evicted := uint64(0)
	for _, e := range r.Evictions {
		if !e.Final {
			return 0
		}
		evicted += e.Keys
	}
	switch {
	case evicted == 0:
		return r.Lost
	case !r.Unique:
		return 0
	}
	return r.Lost - min(r.Lost, evicted)
}

// EvictionNote explains why the number of lost writes is not known exactly; "" if it is.
func (r *Ledger) EvictionNote() string {
	atLeast := r.LostAtLeast()
	if atLeast == r.Lost {
		return ""
	}
	return fmt.Sprintf(
		"Between %d and %d writes were lost: %d acknowledged writes are absent, and Redis may have "+
			"evicted some of them, which is not a loss.", atLeast, r.Lost, r.Lost)
}

// LedgerCheck is what a load pod knows of its ledger during the load: when it was last read as a
// whole, and why it cannot be read.
type LedgerCheck struct {
	// of the last check in which all of it was read: writes acknowledged until then were looked for; 0
	// = none yet
	At         int64
	Failure    string // why the latest check could not read all of it; "" = it did
	Unknowable bool   // no further check will tell a lost write
}

// maxCheckFailure bounds the text of a failure, in bytes.
const maxCheckFailure = 512

// Follow replaces the check by a later one, which need not have read all.
func (c *LedgerCheck) Follow(later LedgerCheck) {
	c.At = max(c.At, later.At)
	c.Failure = strings.ToValidUTF8(later.Failure[:min(len(later.Failure), maxCheckFailure)], "")
	c.Unknowable = c.Unknowable || later.Unknowable
}

// AppendLost writes the lost writes of shards.
func AppendLost(dst []byte, lost []uint64) []byte {
	return codec.AppendList(dst, lost, func(dst []byte, n *uint64) []byte {
		return codec.AppendUint(dst, *n)
	})
}

// ReadLost reads the output of AppendLost: at most MaxShards.
func ReadLost(r *codec.Reader) []uint64 {
	list := codec.ReadList(r, 1, func(n *uint64) { *n = r.Uint() })
	if len(list) > MaxShards {
		r.Fail("lost writes of %d shards", len(list))
		return nil
	}
	return list
}

// AppendCheck writes a check of the ledger.
func AppendCheck(dst []byte, c *LedgerCheck) []byte {
	return codec.AppendBool(codec.AppendText(codec.AppendInt(dst, c.At), c.Failure), c.Unknowable)
}

// ReadCheck reads the output of AppendCheck.
func ReadCheck(r *codec.Reader, c *LedgerCheck) {
	*c = LedgerCheck{r.Int(), r.Text(), r.Bool()}
}
