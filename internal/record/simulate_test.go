package record

import (
	"math/rand/v2"
	"reflect"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/redquake/redquake/internal/record/histogram"
)

const testStep = 100 * time.Millisecond

var (
	testOps     = []string{"get", "set"}
	testTallies = []string{"allowed", "denied"}
)

// sameSeries compares everything a Series holds.
var sameSeries = cmp.Options{cmp.AllowUnexported(Series{}, podRecord{}, stream{}, partStream{}, merging{}, fine{}, block{}, window{}, podUses{}), cmpopts.IgnoreFields(Series{}, "pending", "foldAt", "processes", "busy"),
	cmpopts.IgnoreFields(stream{}, "known"), cmpopts.IgnoreFields(podRecord{}, "settled", "busy"), cmpopts.EquateEmpty()}

// difference returns that of cmp.Diff. It compares with reflect first, which is twenty times faster if the values are equal.
func difference(want, got any, options ...cmp.Option) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return cmp.Diff(want, got, options...)
}

// podIntervals simulates what a pod records in n steps: successes at a random rate with periods without any, and all fields set.
func podIntervals(r *rand.Rand, n int) []*Interval {
	list := make([]*Interval, n)
	var lastOK int64
	shardOK, probeOK := make([]int64, 3), make([]int64, 3)
	silent := int64(0) // until then there is no success
	for i := range list {
		iv := newInterval(int64(i), len(testOps))
		iv.Pods = 1
		begin := int64(i) * int64(testStep)
		if r.IntN(10) == 0 {
			silent = begin + r.Int64N(int64(time.Second))
		}
		for k := range iv.Ops {
			op := &iv.Ops[k]
			h, service, waited := new(histogram.Histogram), new(histogram.Histogram), new(histogram.Histogram)
			for range r.IntN(6) {
				at := begin + r.Int64N(int64(testStep))
				if at < silent {
					op.Fail++
					op.Errors[r.IntN(NumClasses)]++
					waited.Record(r.Int64N(int64(time.Second)))
					iv.FirstError, iv.LastError = earlier(iv.FirstError, at), max(iv.LastError, at)
					continue
				}
				op.OK++
				h.Record(r.Int64N(int64(time.Millisecond)))
				service.Record(r.Int64N(int64(time.Millisecond)))
				iv.FirstOK, iv.LastOK = earlier(iv.FirstOK, at), max(iv.LastOK, at)
			}
			op.Latency, op.Service, op.Waited = h.AppendTo(nil), service.AppendTo(nil), waited.AppendTo(nil)
			op.Sent = op.OK + op.Fail
			op.Due = op.Sent + uint64(r.IntN(3))
			op.BytesOut, op.BytesIn = 40*op.Sent+r.Uint64N(5), 5*op.OK
		}
		iv.Probe.OK = r.Uint64N(4)
		iv.Probe.Latency = iv.Ops[0].Latency
		if iv.FirstOK >= 0 {
			if iv.FirstOK-lastOK > minGap {
				iv.Gaps = []Gap{{From: lastOK, To: iv.FirstOK}}
				if r.IntN(2) == 0 {
					iv.ProbeGaps = []Gap{{From: lastOK, To: iv.FirstOK - r.Int64N(minGap)}}
				}
			}
			lastOK = iv.LastOK
		}
		iv.MaxLag, iv.Connections = r.Int64N(1000), r.IntN(9)
		if r.IntN(4) == 0 {
			iv.Servers = []Server{{At: begin + r.Int64N(int64(testStep)), Address: "a:1", RunID: "r", Version: "7.0.15", CPUSeconds: r.Float64(), Loading: i == 3, SlowLog: SlowLog{Total: -1}}}
		}
		iv.Tallies = []uint64{r.Uint64N(50), r.Uint64N(5)}
		iv.Agents = []AgentUse{{At: begin + int64(testStep), CPUSeconds: r.Float64(), CPULimit: 0.5, BusyThreads: 2, WaitedSeconds: r.Float64(), StolenSeconds: r.Float64(), RoundTrip: r.Int64N(3) * 1000, Memory: r.Int64N(1e9)}}
		if r.IntN(3) == 0 {
			iv.Servers = append(iv.Servers, Server{At: begin + r.Int64N(int64(testStep)), Address: "b:1", AOFFsync: "always", TotalReads: r.Int64N(99),
				SlowLog: SlowLog{Total: 3, Commands: []SlowCommand{
					{Command: "KEYS", Count: 1 + r.Int64N(9), WorstMicros: 1e6 + r.Int64N(1e6), At: begin}, {Command: "EVAL", Count: 1, WorstMicros: r.Int64N(1e6), At: begin}}}, Latency: []LatencyEvent{{Name: "fork", Unix: 1, LatestMillis: 2, MaxMillis: r.Int64N(9)}}})
		}
		iv.Shards, iv.ShardGaps = simulateShards(r, iv.Index, shardOK)
		iv.ProbeShards, iv.ProbeShardGaps = simulateShards(r, iv.Index, probeOK)
		iv.simulateParts(r)
		iv.simulateLedger(r)
		list[i] = &iv
	}
	return list
}

// simulateShards has a few requests at two shards, and after 5 s at a third; lastOK holds the shards' last successes and is updated.
func simulateShards(r *rand.Rand, index int64, lastOK []int64) (counts []ShardCounts, gaps []ShardGap) {
	begin := index * int64(testStep)
	counts = make([]ShardCounts, 2)
	if index >= 50 {
		counts = make([]ShardCounts, 3)
	}
	for k := range counts {
		counts[k].Errors = r.Uint64N(2)
		if r.IntN(4) == 0 {
			continue
		}
		at := begin + r.Int64N(int64(testStep))
		counts[k].OK++
		if at-lastOK[k] > minGap {
			gaps = append(gaps, ShardGap{Shard: k, Gap: Gap{From: lastOK[k], To: at}})
		}
		lastOK[k] = at
	}
	return counts, gaps
}

// simulateParts has gaps with bounds for the parts that had no success, and stalls.
func (iv *Interval) simulateParts(r *rand.Rand) {
	begin := iv.Index * int64(testStep)
	for part := range OpPart(len(testOps)) {
		if r.IntN(8) > 0 {
			continue
		}
		to := begin + r.Int64N(int64(testStep))
		g := Gap{From: max(0, to-minGap-1-r.Int64N(int64(testStep))), To: to, MaybeBefore: r.Int64N(1e6), MaybeSooner: r.Int64N(1e6)}
		if r.IntN(2) == 0 {
			g.UnprovenHead, g.UnprovenTail = r.Int64N(1e6), r.Int64N(1e6)
		}
		iv.PartGaps = append(iv.PartGaps, PartGap{Part: part, Gap: g})
	}
	if r.IntN(10) == 0 {
		iv.Stalls = []Stall{{From: begin, To: begin + r.Int64N(int64(testStep))}}
		iv.Unsettled = true
	}
}

// simulateLedger has checks of the ledger, some of which fail, and a few of which find lost writes.
func (iv *Interval) simulateLedger(r *rand.Rand) {
	if iv.Index%10 != 9 {
		return
	}
	iv.LedgerChecks = []LedgerCheck{{At: (iv.Index + 1) * int64(testStep)}}
	switch r.IntN(4) {
	case 0:
		iv.LedgerChecks = []LedgerCheck{{Failure: "a:1: no reply"}}
	case 1:
		iv.Lost = []uint64{r.Uint64N(9), 0, 1 + r.Uint64N(9)}[:1+r.IntN(3)]
	}
}

// world contains the records of several pods, of different lengths.
func world(r *rand.Rand, pods, n int) [][]*Interval {
	w := make([][]*Interval, pods)
	for p := range w {
		w[p] = podIntervals(r, n+r.IntN(5))
	}
	return w
}

func newTestSeries(pods int) *Series {
	s := NewSeries("run-1", time.Date(2026, 5, 4, 3, 2, 1, 7, time.UTC), testStep, testOps, pods)
	s.SetTallies(testTallies)
	return s
}

// deliver adds all remaining intervals of w, in a random order of the pods, and sometimes calls between.
func deliver(r *rand.Rand, s *Series, w [][]*Interval, then func()) {
	for {
		var left []int
		for p := range w {
			if s.Next(p) < int64(len(w[p])) {
				left = append(left, p)
			}
		}
		if len(left) == 0 {
			return
		}
		p := left[r.IntN(len(left))]
		if err := s.Add(p, w[p][s.Next(p)]); err != nil {
			panic(err)
		}
		if then != nil {
			then()
		}
	}
}
