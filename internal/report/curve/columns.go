// Package curve draws the record of a run: columns of its figures over time, fewer points for a
// picture, and the pictures as SVG with HTML around it. One markup serves every width, and print:
// the drawings are stretched, the text is not.
package curve

import (
	"math"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
	"github.com/redquake/redquake/internal/record/merged"
)

// Columns are the figures of a run over time, one value for each step. A value holds for its step.
type Columns struct {
	Start time.Time // of the load
	Step  time.Duration
	OK    []float64 // successes, without those after the load's planned end
	// Errors are the requests without success by class, the most frequent class first; dropped ones
	// are a class.
	Errors []Class
	// Of the latency of successes, in milliseconds; NaN where there was none.
	P50, P99, Max []float64
	// Stored is the longest step of the counts that the record has, Latencies that of the latencies:
	// longer than Step where it was coarsened.
	Stored, Latencies time.Duration
}

// Class is the requests of one class of errors.
type Class struct {
	Name   string
	Counts []float64
	Total  float64
}

// Dropped is the class of requests that were never sent, because they would have been too late.
const Dropped = "dropped"

// Of returns the columns of a record with at most so many values. Where the record was coarsened, a
// value is spread over its steps.
func Of(s *merged.Series, most int) *Columns {
	b := &builder{series: s, base: s.Step}
	if s.Coarse() {
		b.base = s.PodStep
	}
	step := b.base
	for by, k := time.Duration(1), 0; int(s.End()/step) > most; k++ { // by 1, 2, 5, 10 and so on
		step = b.base * by * [...]time.Duration{2, 5, 10}[k%3]
		if k%3 == 2 {
			by *= 10
		}
	}
	n := int((s.End() + step - 1) / step)
	b.out = &Columns{
		Start:     s.Start,
		Step:      step,
		OK:        make([]float64, n),
		P50:       missing(n),
		P99:       missing(n),
		Max:       missing(n),
		Stored:    step,
		Latencies: step,
	}
	b.dropped = make([]float64, n)
	b.latencies = make([]histogram.Buckets, n)
	b.add()
	b.finish()
	return b.out
}

func missing(n int) []float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = math.NaN()
	}
	return list
}

// builder adds up a record.
type builder struct {
	series    *merged.Series
	base      time.Duration // the finest step
	out       *Columns
	byClass   [record.NumClasses][]float64
	dropped   []float64
	latencies []histogram.Buckets // that begin in a step; nil once it was read
}

// add goes over the intervals of the record, and over those at full resolution where it has them.
func (b *builder) add() {
	s := b.series
	for i := range s.Complete() {
		from, to := time.Duration(i)*s.Step, time.Duration(i+1)*s.Step
		fine := s
		if s.Coarse() {
			fine = s.Fine(from, to-1)
		}
		if fine.Step == s.Step {
			b.interval(s.At(i), from, s.Step, s.LatencyStep)
			continue
		}
		for k := int(from / fine.Step); k < int(to/fine.Step); k++ {
			b.interval(fine.At(k), time.Duration(k)*fine.Step, fine.Step, fine.LatencyStep)
		}
	}
}

// interval adds an interval, which begins at an instant and lasts for a step; the histograms that
// begin in it last for another step.
func (b *builder) interval(iv *record.Interval, from, step, latencyStep time.Duration) {
	first, end := b.cells(from, step)
	var latency histogram.Buckets
	for i := first; i < end; i++ {
		part := b.part(i, from, step)
		for k := range iv.Ops {
			c := &iv.Ops[k].Counts
			b.out.OK[i] += float64(c.OK-c.Drained) * part
			b.dropped[i] += float64(c.Dropped) * part
			b.errors(c, i, part)
		}
	}
	for k := range iv.Ops {
		latency = histogram.Merge(latency, iv.Ops[k].Latency)
	}
	b.out.Stored = max(b.out.Stored, step)
	if len(latency) == 0 {
		return
	}
	b.out.Latencies = max(b.out.Latencies, latencyStep)
	if latencyStep <= b.out.Step {
		if first < end {
			b.latencies[first] = histogram.Merge(b.latencies[first], latency)
		}
		return
	}
	first, end = b.cells(from, latencyStep)
	for i := first; i < end; i++ {
		b.setLatency(i, latency)
	}
}

// cells are the steps [first, end) of the columns that a time reaches into.
func (b *builder) cells(from, length time.Duration) (first, end int) {
	n := len(b.out.OK)
	return min(int(from/b.out.Step), n), min(int((from+length+b.out.Step-1)/b.out.Step), n)
}

// part is the share of a time that is in step i of the columns; the last step has all that is after
// it.
func (b *builder) part(i int, from, length time.Duration) float64 {
	begin := max(from, time.Duration(i)*b.out.Step)
	end := min(from+length, time.Duration(i+1)*b.out.Step)
	if i == len(b.out.OK)-1 {
		end = from + length
	}
	return float64(end-begin) / float64(length)
}

func (b *builder) errors(c *record.Counts, i int, part float64) {
	for class, n := range c.Errors {
		if n == 0 {
			continue
		}
		if b.byClass[class] == nil {
			b.byClass[class] = make([]float64, len(b.out.OK))
		}
		b.byClass[class][i] += float64(n) * part
	}
}

func (b *builder) setLatency(i int, latency histogram.Buckets) {
	ms := func(d time.Duration) float64 { return d.Seconds() * 1000 }
	b.out.P50[i], b.out.P99[i], b.out.Max[i] = ms(latency.Quantile(0.5)), ms(latency.Quantile(0.99)),
		ms(latency.Max())
}

// classesShown is how many classes of errors have a column: the others are one.
const classesShown = 3

func (b *builder) finish() {
	c := b.out
	for i, latency := range b.latencies {
		if len(latency) > 0 {
			b.setLatency(i, latency)
		}
		if c.OK[i] == 0 { // a histogram may span steps without a success
			c.P50[i], c.P99[i], c.Max[i] = math.NaN(), math.NaN(), math.NaN()
		}
	}
	add := func(name string, counts []float64) {
		if total := sum(counts); total > 0 {
			c.Errors = append(c.Errors, Class{name, counts, total})
		}
	}
	add(Dropped, b.dropped)
	for class, counts := range b.byClass {
		add(record.Class(class).String(), counts)
	}
	slices.SortStableFunc(c.Errors, func(x, y Class) int { return int(y.Total - x.Total) })
	if len(c.Errors) > classesShown {
		rest := Class{Name: "others", Counts: make([]float64, len(c.OK))}
		for _, class := range c.Errors[classesShown-1:] {
			rest.Total += class.Total
			for i, n := range class.Counts {
				rest.Counts[i] += n
			}
		}
		c.Errors = append(c.Errors[:classesShown-1:classesShown-1], rest)
	}
}

func sum(list []float64) (total float64) {
	for _, x := range list {
		total += x
	}
	return total
}

// Len is the number of steps.
func (c *Columns) Len() int {
	return len(c.OK)
}

// End is the end of the last step.
func (c *Columns) End() time.Duration {
	return time.Duration(c.Len()) * c.Step
}

// failed is the number of requests without success in a step.
func (c *Columns) failed(i int) (n float64) {
	for k := range c.Errors {
		n += c.Errors[k].Counts[i]
	}
	return n
}

// points is how many points a curve has at most: about one for each pixel of a wide screen.
const points = 1200

// bucket is the values of several steps [first, end): the lowest, the highest, and the mean of
// those that there are. All are NaN if there is none.
type bucket struct {
	first, end     int
	low, high, avg float64
}

// decimate divides the values of [first, end) into at most so many buckets. Each keeps its lowest
// and its highest value: a sample of the points, such as LTTB takes, may leave out the one bad
// interval.
func decimate(values []float64, first, end, most int) []bucket {
	var buckets []bucket
	n := end - first
	m := min(n, most)
	for k := range m {
		b := bucket{
			first: first + k*n/m,
			end:   first + (k+1)*n/m,
			low:   math.NaN(),
			high:  math.NaN(),
			avg:   math.NaN(),
		}
		sum, count := 0.0, 0
		for _, x := range values[b.first:b.end] {
			if math.IsNaN(x) {
				continue
			}
			if count == 0 {
				b.low, b.high = x, x
			}
			b.low, b.high = min(b.low, x), max(b.high, x)
			sum += x
			count++
		}
		if count > 0 {
			b.avg = sum / float64(count)
		}
		buckets = append(buckets, b)
	}
	return buckets
}

// worst divides the steps [first, end) into at most so many buckets, and returns of each the step
// with the most errors, and where it ends.
func (c *Columns) worst(first, end, most int) (at [][3]int) {
	n := end - first
	m := min(n, most)
	for k := range m {
		from, to := first+k*n/m, first+(k+1)*n/m
		worst, errors := from, -1.0
		for i := from; i < to; i++ {
			if e := c.failed(i); e > errors {
				worst, errors = i, e
			}
		}
		at = append(at, [3]int{from, to, worst})
	}
	return at
}
