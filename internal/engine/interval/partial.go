package interval

import (
	"math"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
)

// Partial is what one stripe recorded in one interval. It is written under the stripe's lock.
type Partial struct {
	Ops                                      []partialOp
	firstOK, lastOK, firstError, lastFailure int64 // -1 = none
	maxLag                                   int64
	End                                      int64 // of the load as planned; math.MaxInt64 = none
	Tallies                                  []uint64
	shards                                   []record.ShardCounts
	Stalls                                   []record.Stall
}

// partialOp is one operation in a partial. The histograms, 68 KiB each, are allocated on first use.
type partialOp struct {
	record.Counts
	latency, service, waited *histogram.Histogram
}

func newPartial(ops, tallies int) *Partial {
	s := &Partial{
		Ops:     make([]partialOp, ops),
		Tallies: make([]uint64, tallies),
		End:     math.MaxInt64,
	}
	s.reset()
	return s
}

func (s *Partial) reset() {
	for i := range s.Ops {
		o := &s.Ops[i]
		o.Counts = record.Counts{}
		for _, h := range []*histogram.Histogram{o.latency, o.service, o.waited} {
			if h != nil {
				h.Reset()
			}
		}
	}
	clear(s.Tallies)
	s.shards, s.Stalls = s.shards[:0], s.Stalls[:0]
	s.firstOK, s.lastOK, s.firstError, s.lastFailure, s.maxLag = -1, -1, -1, -1, 0
}

// Shard returns the counts of a shard of the cluster.
func (s *Partial) Shard(shard int) *record.ShardCounts {
	for len(s.shards) <= shard {
		s.shards = append(s.shards, record.ShardCounts{})
	}
	return &s.shards[shard]
}

// Sent counts a request that was written.
func (s *Partial) Sent(op, bytes int) {
	s.Ops[op].Sent++
	s.Ops[op].BytesOut += uint64(bytes)
}

// Lag records how long after its due time an arrival was sent.
func (s *Partial) Lag(ns int64) {
	s.maxLag = max(s.maxLag, ns)
}

// OK counts n successes at the instant at; bytes is the size of all their replies. service is -1 in
// a closed loop.
func (s *Partial) OK(op int, at, latency, service int64, bytes uint64, n uint32) {
	o := &s.Ops[op]
	o.OK += uint64(n)
	if at >= s.End {
		o.Drained += uint64(n)
	}
	o.BytesIn += bytes
	count(&o.latency, latency, n)
	if service >= 0 {
		count(&o.service, service, n)
	}
	s.firstOK, s.lastOK = widen(s.firstOK, s.lastOK, at)
}

// Fail counts a request that was certainly not applied.
func (s *Partial) Fail(op int, at int64, class record.Class, waited int64, bytes int) {
	s.Ops[op].Fail++
	s.failure(op, at, class, waited, bytes)
}

// Unknown counts a request that may have been applied.
func (s *Partial) Unknown(op int, at int64, class record.Class, waited int64, bytes int) {
	s.Ops[op].Unknown++
	s.failure(op, at, class, waited, bytes)
}

func (s *Partial) failure(op int, at int64, class record.Class, waited int64, bytes int) {
	o := &s.Ops[op]
	o.Errors[class]++
	o.BytesIn += uint64(bytes)
	count(&o.waited, waited, 1)
	s.firstError, s.lastFailure = widen(s.firstError, s.lastFailure, at)
}

func count(h **histogram.Histogram, ns int64, n uint32) {
	if *h == nil {
		*h = new(histogram.Histogram)
	}
	(*h).RecordN(ns, n)
}

// Dropped counts an arrival that was never sent.
func (s *Partial) Dropped(op int) {
	s.Ops[op].Dropped++
}

// Missed counts n successes, counted by OK already, as answers that there is nothing to read.
func (s *Partial) Missed(op int, n uint32) {
	s.Ops[op].Missed += uint64(n)
}

// Redirected counts a redirection that is followed.
func (s *Partial) Redirected(op int) {
	s.Ops[op].Redirected++
}

// widen extends the span [first, last], -1 = empty, to include at.
func widen(first, last, at int64) (int64, int64) {
	if first < 0 || at < first {
		first = at
	}
	return first, max(last, at)
}

// addTo adds operation i of the partial to op.
func (s *Partial) addTo(op *record.Op, i int) {
	o := &s.Ops[i]
	op.Due += o.Due
	op.Sent += o.Sent
	op.OK += o.OK
	op.Drained += o.Drained
	op.Fail += o.Fail
	op.Unknown += o.Unknown
	op.Dropped += o.Dropped
	op.Missed += o.Missed
	op.Redirected += o.Redirected
	op.BytesOut += o.BytesOut
	op.BytesIn += o.BytesIn
	for c, n := range o.Errors {
		op.Errors[c] += n
	}
	op.Latency = mergeCells(op.Latency, o.latency)
	op.Service = mergeCells(op.Service, o.service)
	op.Waited = mergeCells(op.Waited, o.waited)
}

func mergeCells(into histogram.Buckets, h *histogram.Histogram) histogram.Buckets {
	if h == nil {
		return into
	}
	if len(into) == 0 {
		return h.AppendTo(into)
	}
	return histogram.Merge(into, h.AppendTo(nil))
}
