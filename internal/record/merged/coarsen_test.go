package merged

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
	"github.com/redquake/redquake/internal/testing/intervals"
)

// totalsOver sums all additive counts over the intervals that begin in [from, to).
func totalsOver(s *Series, from, to time.Duration) (record.Counts, histogram.Distribution) {
	var c record.Counts
	var d histogram.Distribution
	first, end := s.Window(from, to)
	for i := first; i < end; i++ {
		iv := s.At(i)
		for k := range len(iv.Ops) + 1 {
			c.Add(&iv.Operation(k).Counts)
			d.Add(iv.Operation(k).Latency)
			d.Add(iv.Operation(k).Service)
			d.Add(iv.Operation(k).Waited)
		}
	}
	return c, d
}

// alsoOver sums tallies and shards over the whole record.
func alsoOver(s *Series) (tallies [2]uint64, shards [3]record.ShardCounts) {
	for i := range s.Len() {
		for k, n := range s.At(i).Tallies {
			tallies[k] += n
		}
		for k, c := range s.At(i).Shards {
			shards[k].OK += c.OK
			shards[k].Errors += c.Errors
		}
	}
	return tallies, shards
}

func TestCoarsenKeepsTheFigures(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(11, 12))
	w := [][]*record.Interval{intervals.OfPod(r, 300), intervals.OfPod(r, 297)}
	fine, s := newTestSeries(2), newTestSeries(2)
	deliver(r, fine, w, nil)
	deliver(r, s, w, nil)
	for p := range w {
		fine.Finish(p)
		s.Finish(p)
	}
	grids := map[time.Duration]bool{}
	for range 24 {
		s.Coarsen("this test can look at it")
		grids[s.Step] = true
		for from := time.Duration(0); from < 30*time.Second; from += s.LatencyStep {
			wantCounts, wantLatency := totalsOver(fine, from, from+s.LatencyStep)
			gotCounts, gotLatency := totalsOver(s, from, from+s.LatencyStep)
			if diff := difference(wantCounts, gotCounts); diff != "" {
				t.Fatalf("counts per %v from %v:\n%s", s.Step, from, diff)
			}
			if diff := difference(wantLatency, gotLatency, cmp.AllowUnexported(histogram.Distribution{})); diff != "" {
				t.Fatalf("latency per %v from %v:\n%s", s.LatencyStep, from, diff)
			}
		}
		if diff := difference(fine.Gaps(), s.Gaps()); diff != "" || len(s.Gaps()) == 0 {
			t.Fatalf("gaps per %v:\n%s", s.Step, diff)
		}
		if diff := difference(fine.ProbeGaps(), s.ProbeGaps()); diff != "" {
			t.Fatalf("probe gaps per %v:\n%s", s.Step, diff)
		}
		for shard := range 3 {
			if diff := difference(fine.ProbeShardGaps(shard), s.ProbeShardGaps(shard)); diff != "" ||
				len(s.ProbeShardGaps(shard)) == 0 {
				t.Fatalf("gaps of the probe of shard %d per %v:\n%s", shard, s.Step, diff)
			}
			if diff := difference(fine.ShardGaps(shard), s.ShardGaps(shard)); diff != "" || len(s.ShardGaps(shard)) == 0 {
				t.Fatalf("gaps of shard %d per %v:\n%s", shard, s.Step, diff)
			}
		}
		tallies, shards := alsoOver(s)
		if wantTallies, wantShards := alsoOver(fine); tallies != wantTallies || shards != wantShards || shards[2].OK == 0 {
			t.Fatalf("tallies and shards per %v: %v %v, want %v %v", s.Step, tallies, shards, wantTallies, wantShards)
		}
		if !strings.Contains(strings.Join(s.Notes, " "), s.Step.String()) {
			t.Errorf("notes %q", s.Notes)
		}
	}
	if s.Memory() > 2*fine.Memory()/5 {
		t.Errorf("at its coarsest it takes %d bytes, before %d", s.Memory(), fine.Memory())
	}
	for _, step := range []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, time.Second, 2 * time.Second} {
		if !grids[step] {
			t.Errorf("no grid of %v among %v", step, grids)
		}
	}
}

func TestCoarsenBeforeOrAfterAddingIsTheSame(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 13))
		w := world(r, 1+r.IntN(3), 60)
		early, late := newTestSeries(len(w)), newTestSeries(len(w))
		counts, histograms := 200*time.Millisecond, time.Second
		if r.IntN(2) == 0 {
			counts, histograms = time.Second, 2*time.Second
		}
		at := r.IntN(60)
		added := 0
		deliver(r, early, w, func() {
			if added == at {
				early.coarsenHistograms(histograms)
				early.coarsenCounts(counts)
			}
			added++
		})
		deliver(r, late, w, nil)
		late.coarsenHistograms(histograms)
		late.coarsenCounts(counts)
		if diff := difference(late, early, sameSeries); diff != "" {
			t.Fatalf("seed %d, coarsened after %d intervals (-at the end +before):\n%s", seed, at, diff)
		}
	}
}

func TestNextStep(t *testing.T) {
	for _, grid := range [][]time.Duration{
		{
			100 * time.Millisecond, 200 * time.Millisecond, time.Second, 2 * time.Second, 10 * time.Second, 20 * time.Second,
			100 * time.Second,
		},
		{50 * time.Millisecond, 100 * time.Millisecond},
		{250 * time.Millisecond, 500 * time.Millisecond, time.Second},
		{300 * time.Millisecond, 600 * time.Millisecond, 1200 * time.Millisecond},
		{5 * time.Second, 10 * time.Second},
	} {
		for i := range grid[1:] {
			if got := nextStep(grid[i]); got != grid[i+1] {
				t.Errorf("after %v comes %v, want %v", grid[i], got, grid[i+1])
			}
		}
	}
}
