// Package intervals makes intervals of a record at random, with every figure that a pod records.
package intervals

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
)

// Step is the step of the intervals of OfPod.
const Step = 100 * time.Millisecond

// minGap is the length of the shortest gap that a pod records, in nanoseconds.
const minGap = int64(5e6)

// Ops are the names of the operations of OfPod, Tallies those of its counters.
var (
	Ops     = []string{"get", "set"}
	Tallies = []string{"allowed", "denied"}
)

// OfPod simulates what a pod records in n steps: successes at a random rate with periods without any, and all fields
// set.
func OfPod(r *rand.Rand, n int) []*record.Interval {
	list := make([]*record.Interval, n)
	var lastOK int64
	shardOK, probeOK := make([]int64, 3), make([]int64, 3)
	silent := int64(0) // until then there is no success
	for i := range list {
		iv := record.NewInterval(int64(i), len(Ops))
		iv.Pods = 1
		begin := int64(i) * int64(Step)
		if r.IntN(10) == 0 {
			silent = begin + r.Int64N(int64(time.Second))
		}
		for k := range iv.Ops {
			op := &iv.Ops[k]
			h := new(histogram.Histogram)
			service := new(histogram.Histogram)
			waited := new(histogram.Histogram)
			for range r.IntN(6) {
				at := begin + r.Int64N(int64(Step))
				if at < silent {
					op.Fail++
					op.Errors[r.IntN(record.NumClasses)]++
					waited.Record(r.Int64N(int64(time.Second)))
					iv.FirstError = record.Earlier(iv.FirstError, at)
					iv.LastError = max(iv.LastError, at)
					continue
				}
				op.OK++
				h.Record(r.Int64N(int64(time.Millisecond)))
				service.Record(r.Int64N(int64(time.Millisecond)))
				iv.FirstOK, iv.LastOK = record.Earlier(iv.FirstOK, at), max(iv.LastOK, at)
			}
			op.Latency = h.AppendTo(nil)
			op.Service = service.AppendTo(nil)
			op.Waited = waited.AppendTo(nil)
			op.Sent = op.OK + op.Fail
			op.Due = op.Sent + uint64(r.IntN(3))
			op.BytesOut = 40*op.Sent + r.Uint64N(5)
			op.BytesIn = 5 * op.OK
		}
		iv.Probe.OK = r.Uint64N(4)
		iv.Probe.Latency = iv.Ops[0].Latency
		if iv.FirstOK >= 0 {
			if iv.FirstOK-lastOK > minGap {
				iv.Gaps = []record.Gap{{From: lastOK, To: iv.FirstOK}}
				if r.IntN(2) == 0 {
					iv.ProbeGaps = []record.Gap{{From: lastOK, To: iv.FirstOK - r.Int64N(minGap)}}
				}
			}
			lastOK = iv.LastOK
		}
		iv.MaxLag, iv.Connections = r.Int64N(1000), r.IntN(9)
		if r.IntN(4) == 0 {
			iv.Servers = []record.Server{
				{
					At:         begin + r.Int64N(int64(Step)),
					Address:    "a:1",
					RunID:      "r",
					Version:    "7.0.15",
					CPUSeconds: r.Float64(),
					Loading:    i == 3,
					SlowLog:    record.SlowLog{Total: -1},
				},
			}
		}
		iv.Tallies = []uint64{r.Uint64N(50), r.Uint64N(5)}
		iv.Agents = []record.AgentUse{
			{
				At:            begin + int64(Step),
				CPUSeconds:    r.Float64(),
				CPULimit:      0.5,
				BusyThreads:   2,
				WaitedSeconds: r.Float64(),
				StolenSeconds: r.Float64(),
				RoundTrip:     r.Int64N(3) * 1000,
				Memory:        r.Int64N(1e9),
			},
		}
		if r.IntN(3) == 0 {
			iv.Servers = append(iv.Servers, record.Server{
				At:         begin + r.Int64N(int64(Step)),
				Address:    "b:1",
				AOFFsync:   "always",
				TotalReads: r.Int64N(99),
				SlowLog: record.SlowLog{Total: 3, Commands: []record.SlowCommand{
					{Command: "KEYS", Count: 1 + r.Int64N(9), WorstMicros: 1e6 + r.Int64N(1e6), At: begin},
					{Command: "EVAL", Count: 1, WorstMicros: r.Int64N(1e6), At: begin},
				}},
				Latency: []record.LatencyEvent{{Name: "fork", Unix: 1, LatestMillis: 2, MaxMillis: r.Int64N(9)}},
			})
		}
		iv.Shards, iv.ShardGaps = shards(r, iv.Index, shardOK)
		iv.ProbeShards, iv.ProbeShardGaps = shards(r, iv.Index, probeOK)
		addParts(&iv, r)
		addLedger(&iv, r)
		list[i] = &iv
	}
	return list
}

// shards has a few requests at two shards, and after 5 s at a third; lastOK holds the shards' last successes and is
// updated.
func shards(r *rand.Rand, index int64, lastOK []int64) (counts []record.ShardCounts, gaps []record.ShardGap) {
	begin := index * int64(Step)
	counts = make([]record.ShardCounts, 2)
	if index >= 50 {
		counts = make([]record.ShardCounts, 3)
	}
	for k := range counts {
		counts[k].Errors = r.Uint64N(2)
		if r.IntN(4) == 0 {
			continue
		}
		at := begin + r.Int64N(int64(Step))
		counts[k].OK++
		if at-lastOK[k] > minGap {
			gaps = append(gaps, record.ShardGap{Shard: k, Gap: record.Gap{From: lastOK[k], To: at}})
		}
		lastOK[k] = at
	}
	return counts, gaps
}

// addParts has gaps with bounds for the parts that had no success, and stalls.
func addParts(iv *record.Interval, r *rand.Rand) {
	begin := iv.Index * int64(Step)
	for part := range record.OpPart(len(Ops)) {
		if r.IntN(8) > 0 {
			continue
		}
		to := begin + r.Int64N(int64(Step))
		g := record.Gap{
			From:        max(0, to-minGap-1-r.Int64N(int64(Step))),
			To:          to,
			MaybeBefore: r.Int64N(1e6),
			MaybeSooner: r.Int64N(1e6),
		}
		if r.IntN(2) == 0 {
			g.UnprovenHead, g.UnprovenTail = r.Int64N(1e6), r.Int64N(1e6)
		}
		iv.PartGaps = append(iv.PartGaps, record.PartGap{Part: part, Gap: g})
	}
	if r.IntN(10) == 0 {
		iv.Stalls = []record.Stall{{From: begin, To: begin + r.Int64N(int64(Step))}}
		iv.Unsettled = true
	}
}

// addLedger has checks of the ledger, some of which fail, and a few of which find lost writes.
func addLedger(iv *record.Interval, r *rand.Rand) {
	if iv.Index%10 != 9 {
		return
	}
	iv.LedgerChecks = []record.LedgerCheck{{At: (iv.Index + 1) * int64(Step)}}
	switch r.IntN(4) {
	case 0:
		iv.LedgerChecks = []record.LedgerCheck{{Failure: "a:1: no reply"}}
	case 1:
		iv.Lost = []uint64{r.Uint64N(9), 0, 1 + r.Uint64N(9)}[:1+r.IntN(3)]
	}
}

// Draw is a histogram of some random values around a middle.
func Draw(rng *rand.Rand, values int, middle, spread float64) histogram.Buckets {
	var h histogram.Histogram
	for range values {
		h.Record(int64(middle * math.Exp(spread*rng.NormFloat64())))
	}
	return h.AppendTo(nil)
}

// Typical is what a pod records of 1,000 requests/s in 100 ms.
func Typical() record.Interval {
	rng := rand.New(rand.NewPCG(3, 4))
	iv := record.NewInterval(1000, 2)
	iv.Ops[0].Latency, iv.Ops[1].Latency, iv.Probe.Latency = Draw(rng, 10, 300e3, 0.5), Draw(rng, 90, 300e3, 0.5),
		Draw(rng, 10, 300e3, 0.5)
	iv.FirstOK, iv.LastOK = 100e9, 100.1e9
	return iv
}
