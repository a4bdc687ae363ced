package merged

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/codec"
	"github.com/redquake/redquake/internal/record/histogram"
	"github.com/redquake/redquake/internal/record/silence"
)

func TestSeriesEncodeIdentity(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 21))
		w := world(r, 1+r.IntN(3), 40)
		s := newTestSeries(len(w))
		s.Notes = []string{"a note"}
		half := make([][]*record.Interval, len(w))
		for p := range w {
			half[p] = w[p][:r.IntN(len(w[p]))]
		}
		deliver(r, s, half, nil)
		if r.IntN(2) == 0 {
			s.Coarsen("the test runs")
			s.coarsenCounts(200 * time.Millisecond)
		}
		back := reencode(t, s)
		if diff := difference(s, back, sameSeries); diff != "" {
			t.Fatalf("seed %d (-before +after):\n%s", seed, diff)
		}
		// A decoded series must accept the same intervals as the original, also after the end of a pod.
		deliver(r, s, w, nil)
		deliver(r, back, w, nil)
		s.Lose(0)
		back.Lose(0)
		if diff := difference(s, reencode(t, back), sameSeries); diff != "" {
			t.Fatalf("seed %d, after going on (-original +decoded):\n%s", seed, diff)
		}
		if diff := difference(s.Gaps(), back.Gaps()); diff != "" {
			t.Fatalf("seed %d, gaps:\n%s", seed, diff)
		}
	}
}

// A snapshot is the record as it was, whatever is added to it afterwards.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 21))
	w := world(r, 2, 40)
	s := newTestSeries(len(w))
	deliver(r, s, [][]*record.Interval{w[0][:20], w[1][:20]}, nil)
	before, now := reencode(t, s), s.Snapshot()
	deliver(r, s, w, nil)
	copied, err := now.Series()
	if err != nil {
		t.Fatal(err)
	}
	if diff := difference(before, copied, sameSeries); diff != "" {
		t.Errorf("-encoded +copied:\n%s", diff)
	}
	if copied.Len() >= s.Len() {
		t.Errorf("the copy of %d intervals has grown with the record to %d", copied.Len(), s.Len())
	}
}

func reencode(t *testing.T, s *Series) *Series {
	t.Helper()
	b, err := s.Encode(0)
	if err != nil {
		t.Fatal(err)
	}
	back, err := Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	return back
}

func TestDecodeRefusesDamage(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 22))
	s := newTestSeries(2)
	deliver(r, s, world(r, 2, 10), nil)
	good, err := s.Encode(0)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string, b []byte) {
		t.Helper()
		if got, err := Decode(b); !errors.Is(err, codec.ErrCorrupt) || got != nil {
			t.Errorf("%s: error %v", what, err)
		}
	}
	refused("nothing", nil)
	refused("another version", append([]byte{99}, good[1:]...))
	refused("cut short", good[:len(good)-1])
	for range 200 {
		bad := append([]byte(nil), good...)
		// Bytes 4 to 9 of gzip's header are time and system: changes there have no effect.
		i := 11 + r.IntN(len(bad)-11)
		bad[i] ^= 1 << r.IntN(8)
		if got, err := Decode(bad); err == nil && difference(s, got, sameSeries) == "" {
			continue // deflate has unused bits, as the padding of the last byte
		}
		refused("a changed bit", bad)
	}
	// With a valid checksum: every change of the content must lead to an error or a series, never a panic.
	raw, _ := s.appendRaw()
	for range 3000 {
		bad := append([]byte(nil), raw...)
		for range 1 + r.IntN(3) {
			bad[r.IntN(len(bad))] = byte(r.Uint32())
		}
		if got, err := Decode(pack(bad[:1+r.IntN(len(bad))])); err == nil {
			got.Gaps()
			got.Complete()
		} else if !errors.Is(err, codec.ErrCorrupt) {
			t.Fatal(err)
		}
	}
}

// realRun simulates a run of 20,000 requests/s over 2 operations, open loop, with the latencies of a real Redis:
// log-normal around 300 us with a tail. It records through Histogram, as pods do.
func realRun(r *rand.Rand, length time.Duration) *Series {
	s := newTestSeries(1)
	const kinds = 200 // number of intervals that are simulated, and then selected at random
	var pool [kinds]struct{ latency, service histogram.Buckets }
	for i := range pool {
		var latency, service histogram.Histogram
		for range 1000 {
			v := 300e3 * math.Exp(0.4*r.NormFloat64())
			if r.IntN(500) == 0 {
				v *= 10
			}
			latency.Record(int64(v * 1.1))
			service.Record(int64(v))
		}
		pool[i].latency, pool[i].service = latency.AppendTo(nil), service.AppendTo(nil)
	}
	for i := range int64(length / testStep) {
		iv := record.NewInterval(i, 2)
		begin := i * int64(testStep)
		for k := range iv.Ops {
			op := &iv.Ops[k]
			n := uint64(1000 + r.NormFloat64()*30)
			op.OK, op.Sent, op.Due = n, n+r.Uint64N(3), n+r.Uint64N(5)
			op.BytesOut, op.BytesIn = 48*n+r.Uint64N(2000), 37*n+r.Uint64N(200)
			one := &pool[r.IntN(kinds)]
			op.Latency, op.Service = one.latency, one.service
		}
		iv.Probe.Due, iv.Probe.Sent, iv.Probe.OK = 10, 10, 10
		iv.FirstOK, iv.LastOK = begin+r.Int64N(200e3), begin+int64(testStep)-r.Int64N(200e3)
		iv.MaxLag, iv.Connections = r.Int64N(1e6), 50
		if i%10 == 0 {
			iv.Servers = []record.Server{
				{
					At: begin, Address: "redis-0:6379", RunID: "0123456789abcdef0123456789abcdef01234567", Name: "redis",
					Version: "7.0.15",
					Mode:    "standalone", Role: "master", UptimeSeconds: i / 10, CPUSeconds: float64(i) * 0.07,
					UsedMemory: 1e8 + r.Int64N(1e6), CommandsProcessed: i * 2000,
				},
			}
		}
		if err := s.Add(0, &iv); err != nil {
			panic(err)
		}
		if i%1000 == 0 && s.Memory() > 64<<20 {
			s.Coarsen("it fits memory")
		}
	}
	s.Finish(0)
	return s
}

func TestSeriesFitsAConfigMap(t *testing.T) {
	t.Parallel()
	const limit = 900 << 10
	for _, c := range []struct {
		length time.Duration
		step   time.Duration // the counts must be at least as fine
	}{
		{3 * time.Minute, 100 * time.Millisecond},
		{time.Hour, time.Second},
	} {
		t.Run(c.length.String(), func(t *testing.T) {
			s := realRun(rand.New(rand.NewPCG(5, 5)), c.length)
			before, _ := s.appendRaw()
			b, err := s.Encode(limit)
			if err != nil {
				t.Fatal(err)
			}
			if after, _ := s.appendRaw(); !bytes.Equal(before, after) {
				t.Error("Encode changed the series")
			}
			got, err := Decode(b)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%v: %d KiB, counts per %v, latency per %v, %d MiB in memory, notes %q", c.length, len(b)>>10, got.Step,
				got.LatencyStep, s.Memory()>>20, got.Notes)
			if len(b) > limit || got.Step > c.step || got.Step == 0 {
				t.Errorf("%d bytes (limit %d), counts per %v (wanted %v)", len(b), limit, got.Step, c.step)
			}
			wantCounts, wantLatency := totalsOver(s, 0, 2*c.length)
			gotCounts, gotLatency := totalsOver(got, 0, 2*c.length)
			if wantCounts != gotCounts ||
				difference(wantLatency, gotLatency, cmp.AllowUnexported(histogram.Distribution{})) != "" {
				t.Error("the totals changed")
			}
			if coarse := got.Step > testStep; coarse && (len(got.Notes) != 1 || !strings.HasPrefix(got.Notes[0], coarseNote)) {
				t.Errorf("notes %q", got.Notes)
			}
		})
	}
}

func TestSeriesThatCannotFit(t *testing.T) {
	s := newTestSeries(1)
	list := silentFor(500)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range list {
		for range 25 {
			from := int64(i)*int64(testStep) + r.Int64N(int64(testStep))
			list[i].Gaps = append(list[i].Gaps, record.Gap{From: from, To: from + silence.MinGap + r.Int64N(1e6)})
		}
	}
	list[100].Gaps = append(list[100].Gaps, record.Gap{From: 2e9, To: 12e9})
	addAll(t, s, 0, list)
	b, err := s.Encode(8 << 10)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if len(b) > 8<<10 || !strings.Contains(strings.Join(got.Notes, " "), gapNote) || got.Step != testStep {
		t.Errorf("%d bytes, step %v, notes %q", len(b), got.Step, got.Notes)
	}
	if !containsGap(got.Gaps(), record.Gap{From: 2e9, To: 12e9}) {
		t.Error("the long gap was left out")
	}
	if _, err := s.Encode(50); err == nil {
		t.Error("50 bytes were enough")
	}
}

// containsGap reports whether a gap covers another one.
func containsGap(gaps []record.Gap, want record.Gap) bool {
	for _, g := range gaps {
		if g.From <= want.From && g.To >= want.To {
			return true
		}
	}
	return false
}

// Regression: wide histograms that alone exceed the limit made Encode coarsen the grid of histograms without end.
func TestSeriesWhoseHistogramsCannotFit(t *testing.T) {
	wide := make(histogram.Buckets, 4000)
	for i := range wide {
		wide[i] = histogram.Bucket{Index: uint16(i), Count: uint32(1 + i*i%100_003)}
	}
	s := New("wide", time.Unix(0, 0), 5*time.Millisecond, []string{"get", "set"}, 1)
	for i := range int64(400) {
		iv := &record.Interval{
			Index: i, Pods: 1, Ops: make([]record.Op, 2), FirstError: -1, LastError: -1, FirstOK: -1, LastOK: -1,
		}
		iv.Ops[0].Latency, iv.Ops[1].Latency = wide, wide
		if err := s.Add(0, iv); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Encode(4 << 10); err == nil {
		t.Error("4000 cells twice fit 4 KiB")
	}
	if _, err := s.Encode(900 << 10); err != nil {
		t.Errorf("the series exceeds 900 KiB: %v", err)
	}
}
