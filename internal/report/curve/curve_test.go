package curve

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
	"github.com/redquake/redquake/internal/record/merged"
)

// recordOf is a record of one operation: what interval i has.
func recordOf(t testing.TB, step time.Duration, n int, of func(i int, op *record.Op)) *merged.Series {
	t.Helper()
	s := merged.New("run", time.Unix(1_800_000_000, 0), step, []string{"set"}, 1)
	for i := range n {
		from := int64(i) * int64(step)
		iv := &record.Interval{
			Index: int64(i), Pods: 1, Ops: make([]record.Op, 1), FirstOK: from, LastOK: from + int64(step) - 1, FirstError: -1,
			LastError: -1,
		}
		of(i, &iv.Ops[0])
		if err := s.Add(0, iv); err != nil {
			t.Fatal(err)
		}
	}
	s.Finish(0)
	return s
}

// latencies is a histogram of durations.
func latencies(list ...time.Duration) histogram.Buckets {
	var h histogram.Histogram
	for _, d := range list {
		h.Record(int64(d))
	}
	return h.AppendTo(nil)
}

func TestColumns(t *testing.T) {
	s := recordOf(t, 100*time.Millisecond, 30, func(i int, op *record.Op) {
		op.OK, op.Drained = 20, 0
		op.Latency = latencies(time.Millisecond, 3*time.Millisecond)
		if i == 10 { // nothing but errors
			op.OK, op.Latency = 0, nil
			op.Fail, op.Dropped = 5, 7
			op.Errors[record.ClassRefused] = 5
		}
		if i == 29 {
			op.Drained = 8
		}
	})
	c := Of(s, 1000)
	if c.Len() != 30 || c.Step != 100*time.Millisecond || c.Stored != c.Step || c.Latencies != c.Step {
		t.Fatalf("%d steps of %s, stored %s, %s", c.Len(), c.Step, c.Stored, c.Latencies)
	}
	if c.OK[0] != 20 || c.OK[10] != 0 || c.OK[29] != 12 {
		t.Errorf("successes %v", c.OK)
	}
	if len(c.Errors) != 2 || c.Errors[0].Name != Dropped || c.Errors[0].Total != 7 || c.Errors[1].Name != "refused" ||
		c.Errors[1].Counts[10] != 5 || c.failed(10) != 12 {
		t.Errorf("errors %+v", c.Errors)
	}
	if !math.IsNaN(c.P50[10]) || math.Abs(c.P50[0]-1) > .01 || math.Abs(c.Max[0]-3) > .01 {
		t.Errorf("latencies %v, %v", c.P50[:11], c.Max[0])
	}
}

// Fewer points have the same sums, and the quantiles of the merged histograms.
func TestColumnsOfALongRecord(t *testing.T) {
	s := recordOf(t, 100*time.Millisecond, 400, func(i int, op *record.Op) {
		op.OK = uint64(i)
		op.Latency = latencies(time.Duration(i+1) * time.Millisecond)
	})
	c := Of(s, 100)
	if c.Len() != 80 || c.Step != 500*time.Millisecond || sum(c.OK) != 400*399/2 {
		t.Errorf("%d steps of %s with %v", c.Len(), c.Step, sum(c.OK))
	}
	if math.Abs(c.Max[79]-400) > 1 || math.Abs(c.P50[79]-398) > 1 {
		t.Errorf("p50 %v, max %v", c.P50[79], c.Max[79])
	}
}

// Where a record was coarsened, counts are spread over the steps and add up, and what was kept at full resolution stays
// so.
func TestColumnsOfACoarsenedRecord(t *testing.T) {
	s := merged.New("run", time.Unix(1_800_000_000, 0), 100*time.Millisecond, []string{"set"}, 1)
	const n, special = 6000, 3000
	s.Keep("fault", 290*time.Second, 310*time.Second)
	for i := range n {
		from := int64(i) * int64(100*time.Millisecond)
		iv := &record.Interval{
			Index: int64(i), Pods: 1, Ops: make([]record.Op, 1), FirstOK: from, LastOK: from, FirstError: -1, LastError: -1,
		}
		iv.Ops[0].OK = 30
		if i == special {
			iv.Ops[0].OK = 0
		}
		if i%100 == 99 { // a histogram for most of its seconds
			iv.Ops[0].Latency = latencies(time.Millisecond)
		}
		if err := s.Add(0, iv); err != nil {
			t.Fatal(err)
		}
	}
	s.Finish(0)
	for range 4 {
		s.Coarsen("the test asks for it")
	}
	if !s.Coarse() || s.Step <= 100*time.Millisecond {
		t.Fatalf("the record has steps of %s", s.Step)
	}
	c := Of(s, n)
	if c.Step != 100*time.Millisecond || c.Len() != n || c.Stored < s.Step {
		t.Fatalf("%d steps of %s, stored %s", c.Len(), c.Step, c.Stored)
	}
	if got := sum(c.OK); math.Abs(got-30*(n-1)) > 1e-6 {
		t.Errorf("%v successes, want %d", got, 30*(n-1))
	}
	if c.OK[special] != 0 || c.OK[special-1] != 30 {
		t.Errorf("around the fault: %v", c.OK[special-2:special+3])
	}
	for _, most := range []int{2500, 700, 90, 7} { // steps that the record's are no multiple of
		c := Of(s, most)
		if got := sum(c.OK); c.Len() > most || math.Abs(got-30*(n-1)) > 1e-6 {
			t.Errorf("%d steps of %s with %v successes", c.Len(), c.Step, got)
		}
		for i, x := range c.OK[:c.Len()-1] {
			if rate := x / c.Step.Seconds(); math.Abs(rate-300) > 31/c.Step.Seconds() {
				t.Errorf("step %d of %s: %v/s", i, c.Step, rate)
			}
		}
	}
}

// Every bucket has the lowest and the highest of its values: one bad interval of many is not lost.
func TestDecimationKeepsExtremes(t *testing.T) {
	values := make([]float64, 72_000)
	for i := range values {
		values[i] = 100
	}
	values[31_234], values[50_001] = 0, 900
	values[60_000] = math.NaN()
	buckets := decimate(values, 0, len(values), points)
	low, high, next := math.Inf(1), 0.0, 0
	for _, b := range buckets {
		if b.first != next || b.end <= b.first {
			t.Fatalf("bucket %+v after %d", b, next)
		}
		next = b.end
		low, high = min(low, b.low), max(high, b.high)
		if math.IsNaN(b.avg) {
			t.Errorf("a hole at %d, where 59 values are", b.first)
		}
	}
	if len(buckets) != points || next != len(values) || low != 0 || high != 900 {
		t.Errorf("%d buckets to %d, from %v to %v", len(buckets), next, low, high)
	}
}

// What the script reads is what was packed: counts exactly, latencies to 0.03 %.
func TestPack(t *testing.T) {
	c := &Columns{
		Step: time.Second,
		OK:   []float64{0, 65_535, 200_000},
		P50:  []float64{math.NaN(), 0.127, 59_000},
		P99:  []float64{1, 2, 3},
		Max:  []float64{1, 2, 3},
	}
	columns, packed := c.Pack()
	raw, err := base64.StdEncoding.DecodeString(packed)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil || len(data) != 4*3*2 || len(columns) != 4 {
		t.Fatalf("%d bytes, %v, columns %+v", len(data), err, columns)
	}
	at := func(k, i int) float64 { return float64(binary.LittleEndian.Uint16(data[2*(3*k+i):])) }
	if by := columns[0].By; by != 4 || at(0, 2)*by != 200_000 || math.Abs(at(0, 1)*by-65_535) > 4 || at(0, 0) != 0 {
		t.Errorf("counts %v %v %v by %v", at(0, 0), at(0, 1), at(0, 2), columns[0].By)
	}
	for i, want := range c.P50 {
		got := math.Exp2((at(1, i)-1)/perOctave) / 1000
		if math.IsNaN(want) != (at(1, i) == 0) || !math.IsNaN(want) && math.Abs(got/want-1) > .0003 {
			t.Errorf("latency %v is read as %v", want, got)
		}
	}
}

// A hole in the record is a hole in the curve, and a value holds for its step.
func TestPathHasNoSlopes(t *testing.T) {
	c := &Columns{Step: time.Second, OK: []float64{10, 10, 5, 0}, P50: []float64{1, math.NaN(), 1, 1}}
	f := frame{to: 4 * time.Second}
	p := drawn{Kind: "line", High: 10}
	if p.draw(c, c.OK, f); p.D != "M0 0H2500H5000V500H7500V1000H10000" {
		t.Error(p.D)
	}
	q := drawn{Kind: "line", Log: true, Low: .1, High: 10}
	if q.draw(c, c.P50, f); strings.Count(q.D, "M") != 2 {
		t.Error(q.D)
	}
}

func TestNiceLevel(t *testing.T) {
	for _, tc := range []struct{ value, high, step float64 }{
		{3000, 3000, 1000},
		{2200, 3000, 1000},
		{1.2, 2, 1},
		{0, 1, 1},
		{980, 1000, 200},
		{150, 150, 50},
	} {
		scale, step := niceLevel(tc.value)
		if scale.high != tc.high || step != tc.step {
			t.Errorf("%v: up to %v by %v, want %v by %v", tc.value, scale.high, step, tc.high, tc.step)
		}
	}
}

// All requests of an outage may fail at once, at its end: the labels of the drawing of a fault stay few, and what is
// cut off is named.
func TestZoomOfALowRate(t *testing.T) {
	const n, injected, recovered = 300, 100, 160
	c := &Columns{
		Step:   100 * time.Millisecond,
		OK:     make([]float64, n),
		P50:    missing(n),
		P99:    missing(n),
		Max:    missing(n),
		Errors: []Class{{Name: "timeout", Counts: make([]float64, n), Total: 91}},
	}
	for i := range c.OK {
		if i < injected || i >= recovered {
			c.OK[i] = 5
		}
	}
	c.Errors[0].Counts[recovered] = 91
	fault := Fault{
		Name:      "kill",
		Type:      "PodKill",
		At:        c.at(injected),
		Recovered: c.at(recovered),
		Outage:    Window{c.at(injected), c.at(recovered)},
		Due:       50,
		Main:      true,
	}
	s := &Scene{Columns: c, Zero: fault.At, OfFault: true, Level: 50, Faults: []Fault{fault}}
	drawing := string(s.Zoom("zoom", &fault))
	if labels := strings.Count(drawing, `class="yl"`); labels < 3 || labels > mostTicks+2 {
		t.Errorf("%d labels at the left", labels)
	}
	if !strings.Contains(drawing, "91<span class=\"w7\"> in 100\u00a0ms, cut off") {
		t.Errorf("what is cut off has no name:\n%s", drawing)
	}
}

// Labels of a lane, as wide as they are in a browser, neither meet nor leave the lane, in whatever width of a drawing
// they are shown.
func TestLabelsOfALane(t *testing.T) {
	f := frame{to: time.Second}
	at := func(ms ...int) (list []segment) {
		for i := 0; i+1 < len(ms); i += 2 {
			list = append(list, segmentOf(f, &Phase{
				Name: "ContainerStarted", From: time.Duration(ms[i]) * time.Millisecond,
				To: time.Duration(ms[i+1]) * time.Millisecond,
			}))
		}
		label(list)
		return list
	}
	for _, tc := range []struct {
		name                 string
		segments             []segment
		of                   int
		inside, length, near string
	}{
		{"all in the segment", at(0, 900), 0, "any", "any", ""},
		{"the name where there is room", at(100, 400, 450, 900), 0, "w10", "any", ""},
		{"after the segment", at(0, 10), 0, "", "", "any"},
		{"before it", at(600, 610, 620, 990), 0, "", "", "l w5"},
		{"nowhere: the begin is too near", at(20, 40, 60, 990), 0, "", "", ""},
		{"nowhere: the end is too near", at(0, 970, 975, 990), 1, "", "", ""},
	} {
		s := tc.segments[tc.of]
		if s.Name != tc.inside || s.Inside != tc.length || s.Beside != tc.near {
			t.Errorf("%s: name %q, length %q, beside %q", tc.name, s.Name, s.Inside, s.Beside)
		}
	}
}
