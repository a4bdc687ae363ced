package record

import (
	"errors"
	"math"
	"testing"

	"github.com/redquake/redquake/internal/record/codec"
)

// What no load can have recorded is refused, whatever else is right.
func TestCheckOfAnInterval(t *testing.T) {
	t.Parallel()
	good := func() Interval {
		iv := NewInterval(3, 2)
		iv.Gaps, iv.Shards, iv.Tallies = []Gap{{From: 1, To: 2}}, []ShardCounts{{OK: 1}}, []uint64{7}
		iv.Ops[0].BytesIn = 1 << 40
		return iv
	}
	iv := good()
	if err := iv.Check(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Interval){
		"a count beyond int64":  func(iv *Interval) { iv.Ops[1].OK = math.MaxUint64 },
		"a count beyond a load": func(iv *Interval) { iv.Probe.Fail = maxCount + 1 },
		"bytes":                 func(iv *Interval) { iv.Ops[0].BytesOut = maxAmount + 1 },
		"errors of a class":     func(iv *Interval) { iv.Ops[0].Errors[1] = math.MaxUint64 },
		"a tally":               func(iv *Interval) { iv.Tallies[0] = 1 << 63 },
		"a shard":               func(iv *Interval) { iv.Shards[0].Errors = 1 << 63 },
		"a shard of the probe":  func(iv *Interval) { iv.ProbeShards = []ShardCounts{{OK: 1 << 31}} },
		"an instant":            func(iv *Interval) { iv.LastOK = math.MaxInt64 },
		"an early instant":      func(iv *Interval) { iv.FirstError = -2 },
		"connections":           func(iv *Interval) { iv.Connections = -5 },
		"a gap that ends first": func(iv *Interval) { iv.Gaps[0].To = 0 },
		"a gap's bounds":        func(iv *Interval) { iv.ProbeGaps = []Gap{{From: 1, To: 2, MaybeSooner: -1}} },
		"a shard's gap":         func(iv *Interval) { iv.ShardGaps = []ShardGap{{Gap: Gap{From: -9}}} },
		"a gap of the probe":    func(iv *Interval) { iv.ProbeShardGaps = []ShardGap{{Gap: Gap{To: math.MaxInt64}}} },
		"a gap of an operation": func(iv *Interval) { iv.PartGaps = []PartGap{{Gap: Gap{From: 3, To: 1}}} },
		"lost writes":           func(iv *Interval) { iv.Lost = []uint64{1, 1 << 51} },
		"a check of the ledger": func(iv *Interval) { iv.LedgerChecks = []LedgerCheck{{At: math.MaxInt64}} },
		"a stall":               func(iv *Interval) { iv.Stalls = []Stall{{From: 2, To: 1}} },
	} {
		iv := good()
		change(&iv)
		if err := iv.Check(); !errors.Is(err, codec.ErrCorrupt) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestCheckOfALedger(t *testing.T) {
	t.Parallel()
	good := func() Ledger {
		return Ledger{
			Acked:     5,
			Lost:      1,
			FirstLost: 7,
			LastLost:  7,
			Losses:    []Loss{{First: 7, Last: 7, Count: 1}},
			Stale:     &Staleness{Reads: 3},
			Dual:      &DualPrimary{Writes: 1},
		}
	}
	whole := good()
	if err := whole.Check(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Ledger){
		"writes":           func(l *Ledger) { l.Acked = math.MaxUint64 },
		"an instant":       func(l *Ledger) { l.FirstLost = -1 },
		"replicas":         func(l *Ledger) { l.Replicas = -1 },
		"too many":         func(l *Ledger) { l.Replicas = math.MaxInt },
		"a loss of none":   func(l *Ledger) { l.Losses[0].Count = 0 },
		"losses":           func(l *Ledger) { l.Losses = append(make([]Loss, MaxLosses), l.Losses...) },
		"stale reads":      func(l *Ledger) { l.Stale.RolledBack = 1 << 63 },
		"how stale":        func(l *Ledger) { l.Stale.MaxBehind = math.MinInt64 },
		"two primaries":    func(l *Ledger) { l.Dual.Writes = 1 << 51 },
		"evictions":        func(l *Ledger) { l.Evictions = map[string]Evictions{"": {Keys: math.MaxUint64}} },
		"of which present": func(l *Ledger) { l.UnknownPresent = 1 << 60 },
	} {
		l := good()
		change(&l)
		if err := l.Check(); !errors.Is(err, codec.ErrCorrupt) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
