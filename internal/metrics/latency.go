package metrics

import (
	"math"
	"sort"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/redquake/redquake/internal/record/histogram"
)

// classicBounds are the upper bounds of the classic buckets, in seconds.
var classicBounds = [classicBuckets]float64{
	0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01,
	0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
}

// nativeSchema is the resolution of the native histogram: each bucket's bounds are 2^(1/8) apart,
// which is 9%.
const nativeSchema = 3

// latencies are the latencies of one operation in the buckets of Prometheus.
//
// The record's histogram has cells of 1 us, and above 2 ms of at most 1/1024 of the value. The
// values of a cell go to the bucket of its highest one. So the count is exact, and a latency is in
// the next bucket only if it is by less than 1 us, or 0.1%, below its bound: no quantile is
// reported too low, nor for that reason by more than 0.1% or 1 us too high. The sum takes the
// middle of each cell: it is right to 0.05%, or 1 us for each value. Values above 60 s count as 60
// s, as in the record.
type latencies struct {
	count   uint64
	sum     float64                    // seconds
	native  [nativeBuckets]uint64      // from firstNative on
	classic [classicBuckets + 1]uint64 // not cumulative; the last one is beyond all bounds
}

const (
	classicBuckets = 17
	// firstNative is the number of the bucket of 1 us, and nativeBuckets how many there are up to 67
	// s, the highest value that a cell stands for.
	firstNative, nativeBuckets = -159, 209
)

// place is the position of the buckets in which the values of a cell of the record are counted.
type place struct{ native, classic uint8 }

// places are those of all cells of a record's histogram.
var places = sync.OnceValue(func() []place {
	all := make([]place, histogram.Cells)
	for i := 1; i < len(all); i++ { // the cell 0 is never used
		seconds := float64(histogram.Bucket{Index: uint16(i)}.Highest()) / float64(time.Second)
		all[i].native = uint8(math.Ceil(math.Log2(seconds)*(1<<nativeSchema)) - firstNative)
		all[i].classic = uint8(sort.SearchFloat64s(classicBounds[:], seconds))
	}
	return all
})

// add adds a histogram of the record.
func (l *latencies) add(b histogram.Buckets) {
	if len(b) == 0 {
		return
	}
	all := places()
	for _, c := range b {
		p := all[c.Index]
		l.native[p.native] += uint64(c.Count)
		l.classic[p.classic] += uint64(c.Count)
	}
	n := b.Count()
	l.count += n
	l.sum += b.Mean().Seconds() * float64(n)
}

// bothForms is a native and classic histogram at the same time, as client_golang makes it of single
// values.
type bothForms struct {
	prometheus.Metric // the native one
	buckets           []*dto.Bucket
}

// Write implements prometheus.Metric.
func (h bothForms) Write(out *dto.Metric) error {
	if err := h.Metric.Write(out); err != nil {
		return err
	}
	out.Histogram.Bucket = h.buckets
	return nil
}

// metric returns the histogram, of values since an instant.
func (l *latencies) metric(
	desc *prometheus.Desc, since time.Time, labels ...string,
) (prometheus.Metric, error) {
	single := map[int]int64{}
	for i, n := range l.native {
		if n > 0 {
			single[firstNative+i] = int64(n)
		}
	}
	native, err := prometheus.NewConstNativeHistogram(desc, l.count, l.sum, single, nil, 0,
		nativeSchema, 0, since, labels...)
	if err != nil {
		return nil, err
	}
	buckets := make([]*dto.Bucket, len(classicBounds))
	below := uint64(0)
	for i := range buckets {
		below += l.classic[i]
		buckets[i] = &dto.Bucket{UpperBound: new(classicBounds[i]), CumulativeCount: new(below)}
	}
	return bothForms{native, buckets}, nil
}
