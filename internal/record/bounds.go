package record

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/record/codec"
)

// Limits of what a load pod, whose image may be anybody's, may report. What is made of it fits the
// figures of a status.
const (
	maxCount   = 1 << 30 // of requests in an interval
	maxAmount  = 1 << 48 // of bytes, or of the workload's own counters, in an interval
	maxReading = 1 << 53 // of a server, or of a process
	maxWrites  = 1 << 50 // of a ledger
	maxInstant = int64(400 * 24 * time.Hour)
	maxText    = 256
)

// Check returns an error that wraps codec.ErrCorrupt for figures that no load can have recorded.
func (iv *Interval) Check() error {
	for i := range iv.Ops {
		if err := iv.Ops[i].check(); err != nil {
			return fmt.Errorf("operation %d: %w", i, err)
		}
	}
	if err := iv.Probe.check(); err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	for _, shards := range [...][]ShardCounts{iv.Shards, iv.ProbeShards} {
		for _, c := range shards {
			if c.OK > maxCount || c.Errors > maxCount {
				return fmt.Errorf("%w: a shard has %d successes and %d errors", codec.ErrCorrupt, c.OK,
					c.Errors)
			}
		}
	}
	for _, n := range iv.Tallies {
		if n > maxAmount {
			return fmt.Errorf("%w: a tally is %d", codec.ErrCorrupt, n)
		}
	}
	for _, at := range [...]int64{
		iv.FirstError, iv.LastError, iv.FirstOK, iv.LastOK, iv.MaxLag,
		int64(iv.Connections),
	} {
		if at < -1 || at > maxInstant {
			return fmt.Errorf("%w: instant %d", codec.ErrCorrupt, at)
		}
	}
	if err := iv.checkLost(); err != nil {
		return err
	}
	return iv.checkGaps()
}

func (iv *Interval) checkLost() error {
	for _, n := range iv.Lost {
		if n > maxWrites {
			return fmt.Errorf("%w: %d lost writes", codec.ErrCorrupt, n)
		}
	}
	for i := range iv.LedgerChecks {
		if at := iv.LedgerChecks[i].At; at < 0 || at > maxInstant {
			return fmt.Errorf("%w: a check of the ledger at %d", codec.ErrCorrupt, at)
		}
	}
	return nil
}

func (op *Op) check() error {
	for _, n := range op.Figures() {
		limit := uint64(maxCount)
		if n == &op.BytesIn || n == &op.BytesOut {
			limit = maxAmount
		}
		if *n > limit {
			return fmt.Errorf("%w: a count is %d", codec.ErrCorrupt, *n)
		}
	}
	if n := slices.Max(op.Errors[:]); n > maxCount {
		return fmt.Errorf("%w: %d errors", codec.ErrCorrupt, n)
	}
	return nil
}

func (iv *Interval) checkGaps() error {
	for _, gaps := range [...][]Gap{iv.Gaps, iv.ProbeGaps} {
		for i := range gaps {
			if !gaps[i].sane() {
				return fmt.Errorf("%w: gap %+v", codec.ErrCorrupt, gaps[i])
			}
		}
	}
	for _, gaps := range [...][]ShardGap{iv.ShardGaps, iv.ProbeShardGaps} {
		for i := range gaps {
			if !gaps[i].sane() {
				return fmt.Errorf("%w: gap of a shard %+v", codec.ErrCorrupt, gaps[i])
			}
		}
	}
	for i := range iv.PartGaps {
		if !iv.PartGaps[i].sane() {
			return fmt.Errorf("%w: gap of an operation %+v", codec.ErrCorrupt, iv.PartGaps[i])
		}
	}
	for _, s := range iv.Stalls {
		if s.From < -maxInstant || s.To < s.From || s.To > maxInstant {
			return fmt.Errorf("%w: stall %+v", codec.ErrCorrupt, s)
		}
	}
	return nil
}

func (g *Gap) sane() bool {
	for _, b := range g.bounds() {
		if *b < 0 || *b > maxInstant {
			return false
		}
	}
	return g.From >= 0 && g.From <= g.To && g.To <= maxInstant
}

// Check returns an error that wraps codec.ErrCorrupt for figures that no ledger can have.
func (r *Ledger) Check() error {
	counts := []uint64{
		r.Acked, r.Failed, r.Unknown, r.UnknownPresent, r.FailedPresent, r.Lost,
		r.Errors, r.ReplicaMissing,
	}
	instants := []int64{r.FirstLost, r.LastLost, int64(r.Replicas)}
	for _, l := range r.Losses {
		counts = append(counts, l.Count, l.Errors)
		instants = append(instants, l.First, l.Last, l.After, l.Until)
	}
	if s := r.Stale; s != nil {
		counts = append(counts, s.Reads, s.Stale, s.MaxWrites, s.NonMonotonic, s.RolledBack)
		instants = append(instants, s.MaxBehind)
	}
	if d := r.Dual; d != nil {
		counts, instants = append(counts, d.Writes), append(instants, d.First, d.Last)
	}
	if r.ExecutedTwice != nil {
		counts = append(counts, *r.ExecutedTwice)
	}
	for _, e := range r.Evictions {
		counts = append(counts, e.Keys)
	}
	switch {
	case slices.Max(counts) > maxWrites, slices.Min(instants) < 0, slices.Max(instants) > maxInstant,
		r.Replicas > math.MaxInt32:
		return fmt.Errorf("%w: the ledger's figures are out of range", codec.ErrCorrupt)
	case slices.ContainsFunc(r.Losses, func(l Loss) bool { return l.Count == 0 }),
		len(r.Losses) > MaxLosses:
		return fmt.Errorf("%w: the ledger's losses are out of range", codec.ErrCorrupt)
	}
	return nil
}

// Bound brings a reading into the range of what a server may report: Redis may be anybody's, too,
// and its readings are no reason to refuse a record. printable cuts a text and replaces what cannot
// be shown.
func (s *Server) Bound(printable func(text string, bytes int) string) {
	for _, text := range s.texts() {
		*text = printable(*text, maxText)
	}
	total, at := s.SlowLog.Total, s.At
	for _, n := range s.numbers() {
		*n = within(*n, 0, maxReading)
	}
	s.At, s.SlowLog.Total, s.Shard = within(at, -maxInstant, maxInstant),
		within(total, -1, maxReading), min(s.Shard, MaxShards)
	for _, x := range [...]*float64{&s.CPUSeconds, &s.CPUMainThreadSeconds} {
		*x = seconds(*x)
	}
	for i := range s.SlowLog.Commands {
		c := &s.SlowLog.Commands[i]
		c.Command = printable(c.Command, maxWord)
		c.Count = within(c.Count, 1, maxReading)
		c.WorstMicros = within(c.WorstMicros, 0, maxReading)
		c.At = within(c.At, -maxInstant, maxInstant)
	}
	for i := range s.Latency {
		e := &s.Latency[i]
		e.Name = printable(e.Name, maxWord)
		e.Unix = within(e.Unix, 0, maxReading)
		e.LatestMillis = within(e.LatestMillis, 0, maxReading)
		e.MaxMillis = within(e.MaxMillis, 0, maxReading)
	}
}

// maxWord is the length of the name of a command or of an event.
const maxWord = 60

// Bound does the same for a reading of the load generator's process.
func (a *AgentUse) Bound() {
	a.At = within(a.At, -maxInstant, maxInstant)
	a.BusyThreads = int(within(int64(a.BusyThreads), 0, maxCount))
	for _, n := range [...]*int64{&a.RoundTrip, &a.IdleRoundTrip, &a.Memory} {
		*n = within(*n, 0, maxReading)
	}
	for _, x := range a.floats() {
		*x = seconds(*x)
	}
}

func within(n, least, most int64) int64 {
	return min(max(n, least), most)
}

// seconds is a number of seconds, or of cores: 0 if it is none.
func seconds(x float64) float64 {
	if !(x > 0) { // negative, or NaN
		return 0
	}
	return min(x, 1e9)
}
