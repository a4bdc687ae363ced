package interval

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/record"
)

const ms = int64(time.Millisecond)

func put(s *Stripe, at int64, write func(*Partial)) {
	sl, _ := s.Lock(at)
	write(sl)
	s.Unlock()
}

func TestRecordsAreCountedInTheirInterval(t *testing.T) {
	r := New(100*ms, 1, 0, 1)
	s := r.Stripes[0]
	ok := func(at int64) { put(s, at, func(sl *Partial) { sl.OK(0, at, ms, -1, 5, 1) }) }
	ok(0)
	ok(99 * ms)
	ok(100 * ms) // the next interval begins before this one is closed
	ok(98 * ms)  // and records from before its end still arrive
	first := r.Close(0)
	if first.Ops[0].OK != 3 || first.FirstOK != 0 || first.LastOK != 99*ms || first.FirstError != -1 ||
		first.LastError != -1 {
		t.Errorf("interval 0 has %d ok from %d to %d", first.Ops[0].OK, first.FirstOK, first.LastOK)
	}
	ok(50 * ms) // too late for its interval: it goes to the open one
	second, third, fourth := r.Close(1), r.Close(2), r.Close(3)
	if second.Ops[0].OK != 2 || third.Ops[0].OK != 0 || fourth.Ops[0].OK != 0 {
		t.Errorf("intervals 1 to 3 have %d, %d, %d ok, want 2, 0, 0", second.Ops[0].OK, third.Ops[0].OK, fourth.Ops[0].OK)
	}
	if fourth.Index != 3 || fourth.Pods != 1 || fourth.FirstOK != -1 || len(fourth.Ops[0].Latency) != 0 {
		t.Errorf("an empty interval is %+v", fourth)
	}
}

// Where the process did not run for a while, workers may record before the goroutine that closes intervals has caught
// up.
func TestRecordsBehindAStallAreCountedInTheirInterval(t *testing.T) {
	r := New(100*ms, 2, 1, 1)
	r.SetEnd(1000 * ms)
	for _, at := range []int64{950, 150, 350, 955, 1050} {
		put(r.Stripes[0], at*ms, func(sl *Partial) { sl.OK(1, at*ms, ms, -1, 5, 1) })
	}
	want := map[int64]uint64{1: 1, 3: 1, 9: 3} // what comes after the end is counted in the last one
	for i := range int64(10) {
		iv := r.Close(i)
		if n := iv.Ops[1].OK; n != want[i] {
			t.Errorf("interval %d has %d successes, want %d", i, n, want[i])
		}
		if i == 9 && (iv.Ops[1].Drained != 1 || iv.FirstOK != 950*ms || iv.LastOK != 1050*ms) {
			t.Errorf("of the last interval %d are drained, from %d to %d", iv.Ops[1].Drained, iv.FirstOK, iv.LastOK)
		}
	}
	if len(r.Stripes[0].ahead) != 0 {
		t.Errorf("%d partials are left", len(r.Stripes[0].ahead))
	}
}

// A run that a step ends sooner than planned counts what is behind the end.
func TestRecordsBehindASoonerEndAreCounted(t *testing.T) {
	r := New(100*ms, 1, 0, 1)
	for _, at := range []int64{250, 350, 750, 100 * mostAhead * 2} {
		put(r.Stripes[0], at*ms, func(sl *Partial) { sl.Sent(0, 10) })
	}
	if n := len(r.Stripes[0].ahead); n != 4 {
		t.Errorf("%d partials for later intervals, want 4", n)
	}
	r.SetLast(2)
	sum := uint64(0)
	for i := range int64(3) {
		sum += r.Close(i).Ops[0].Sent
	}
	if sum != 4 {
		t.Errorf("%d of 4 records are counted", sum)
	}
}

func TestLateRecordsGoToTheLastInterval(t *testing.T) {
	r := New(100*ms, 1, 0, 1)
	r.SetLast(1)
	put(r.Stripes[0], 570*ms, func(sl *Partial) { sl.Sent(0, 10) })
	if n := r.Close(0).Ops[0].Sent; n != 0 {
		t.Errorf("%d records in interval 0", n)
	}
	put(r.Stripes[0], 580*ms, func(sl *Partial) { sl.Sent(0, 10) })
	if op := r.Close(1).Ops[0]; op.Sent != 2 || op.BytesOut != 20 {
		t.Errorf("the last interval has %d sent of %d bytes, want 2 of 20", op.Sent, op.BytesOut)
	}
}

func TestShardsAddUp(t *testing.T) {
	r := New(100*ms, 2, 0, 2)
	for i, s := range r.Stripes {
		at := int64(10+i) * ms
		put(s, at, func(sl *Partial) {
			sl.Sent(1, 7)
			sl.Lag(int64(i) * ms)
			sl.OK(1, at, 2*ms, ms, 3, 1)
			sl.Fail(1, at+ms, record.ClassReadOnly, 3*ms, 4)
			sl.Unknown(1, at+2*ms, record.ClassReset, 4*ms, 0)
			sl.Dropped(1)
		})
	}
	put(r.Probe, 5*ms, func(sl *Partial) { sl.OK(0, 5*ms, ms, ms, 1, 1) })
	iv := r.Close(0)
	op := iv.Ops[1]
	want := record.Counts{Sent: 2, OK: 2, Fail: 2, Unknown: 2, Dropped: 2, BytesOut: 14, BytesIn: 14}
	want.Errors[record.ClassReadOnly], want.Errors[record.ClassReset] = 2, 2
	if op.Counts != want {
		t.Errorf("counts are %+v, want %+v", op.Counts, want)
	}
	if op.Latency.Count() != 2 || op.Service.Count() != 2 || op.Waited.Count() != 4 ||
		op.Waited.Max().Round(10*time.Microsecond) != 4*time.Millisecond {
		t.Errorf("histograms: %v, %v, %v", op.Latency, op.Service, op.Waited)
	}
	if iv.FirstOK != 10*ms || iv.LastOK != 11*ms || iv.FirstError != 11*ms || iv.LastError != 13*ms || iv.MaxLag != ms {
		t.Errorf("ok from %d to %d, errors from %d to %d, lag %d", iv.FirstOK, iv.LastOK, iv.FirstError, iv.LastError,
			iv.MaxLag)
	}
	if iv.Ops[0].Counts != (record.Counts{}) || iv.Probe.OK != 1 {
		t.Errorf("the other operation has %+v, the probe %+v", iv.Ops[0].Counts, iv.Probe.Counts)
	}
}

// TestConcurrentRecordsAreAllCounted records from several goroutines with jittered instants while intervals are closed,
// and compares the sums.
func TestConcurrentRecordsAreAllCounted(t *testing.T) {
	const workers, each = 8, 20_000
	r := New(ms, 3, 0, 4)
	start := time.Now()
	var all sync.WaitGroup
	var totals [workers][3]uint64
	for w := range workers {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 1))
			for range each {
				op := rng.IntN(3)
				at := max(0, int64(time.Since(start))+rng.Int64N(4*ms)-2*ms)
				put(r.Stripes[w%4], at, func(sl *Partial) { sl.OK(op, at, ms, -1, 1, 1) })
				totals[w][op]++
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	var got [3]uint64
	add := func(iv *record.Interval) {
		for op := range got {
			got[op] += iv.Ops[op].OK
			if iv.Ops[op].Latency.Count() != iv.Ops[op].OK {
				t.Errorf("interval %d: %d latencies for %d ok", iv.Index, iv.Ops[op].Latency.Count(), iv.Ops[op].OK)
			}
		}
	}
	i := int64(0)
	for running := true; running; i++ {
		select {
		case <-done:
			running = false
		case <-time.After(500 * time.Microsecond):
		}
		add(r.Close(i))
	}
	r.SetLast(i)
	add(r.Close(i))
	var want [3]uint64
	for _, w := range totals {
		for op, n := range w {
			want[op] += n
		}
	}
	if got != want {
		t.Errorf("recorded %v, the workers counted %v", got, want)
	}
}

func BenchmarkRecord(b *testing.B) {
	r := New(100*ms, 1, 0, 4)
	var n int64
	b.ReportAllocs()
	for b.Loop() {
		n++
		s, _ := r.Stripes[0].Lock(n)
		s.OK(0, n, 200_000+n%1000, -1, 5, 1)
		r.Stripes[0].Unlock()
	}
}
