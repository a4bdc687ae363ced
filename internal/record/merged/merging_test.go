package merged

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/silence"
	"github.com/redquake/redquake/internal/testing/truth"
)

// TestMergingGapsAllAlongIsTheSame merges the gaps of pods at random times, while pods are lost and finish, and
// compares the result with that of merging them once, at the end.
func TestMergingGapsAllAlongIsTheSame(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 14))
		w := world(r, 1+r.IntN(4), 150)
		for _, list := range w {
			for _, iv := range list {
				iv.Probe.OK = 0 // the simulated gaps of the probe do not fit its successes
			}
		}
		once, along := newTestSeries(len(w)), newTestSeries(len(w))
		once.common.foldAt = math.MaxInt
		lost, when := r.IntN(len(w)), r.Int64N(150)
		draws := rand.New(rand.NewPCG(seed, 15))
		deliver(draws, along, w, func() {
			if r.IntN(20) == 0 {
				along.foldGaps()
			}
		})
		deliver(rand.New(rand.NewPCG(seed, 15)), once, w, nil)
		if seed%2 == 0 && when%2 == 0 {
			once.Lose(lost)
			along.Lose(lost)
			along.foldGaps()
		}
		compare := func(what string, want, got []record.Gap) {
			if diff := difference(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("seed %d, %s (-once +all along):\n%s", seed, what, diff)
			}
		}
		for range 2 {
			compare("gaps", once.Gaps(), along.Gaps())
			compare("gaps of the probe", once.ProbeGaps(), along.ProbeGaps())
			for k := range once.ProbeShards() {
				compare(fmt.Sprint("gaps of the probe of shard ", k), once.ProbeShardGaps(k), along.ProbeShardGaps(k))
			}
			for k := range once.Shards() {
				compare(fmt.Sprint("gaps of shard ", k), once.ShardGaps(k), along.ShardGaps(k))
			}
			for p := range w {
				once.Finish(p)
				along.Finish(p)
			}
			along.foldGaps()
		}
	}
}

// randomArrivals adds n intervals of every pod, with successes at random instants at the given rate per second; the gap
// logs are those of pods.
func randomArrivals(t *testing.T, s *Series, rate float64, n int64) {
	t.Helper()
	r := rand.New(rand.NewPCG(16, 17))
	next, last := make([]float64, s.Pods), make([]int64, s.Pods)
	threshold := max(int64(2e9/rate), silence.MinGap)
	for i := range n {
		for pod := range s.Pods {
			iv := record.NewInterval(i, len(s.Ops))
			end := float64((i + 1) * int64(s.PodStep))
			for ; next[pod] < end; next[pod] += r.ExpFloat64() * 1e9 / rate {
				at := int64(next[pod])
				if at-last[pod] > threshold {
					iv.Gaps = append(iv.Gaps, record.Gap{From: last[pod], To: at})
				}
				iv.Ops[0].OK++
				last[pod], iv.LastOK = at, at
				iv.FirstOK = record.Earlier(iv.FirstOK, at)
			}
			if err := s.Add(pod, &iv); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestTruthGapsTakeLittleMemory: 200 pods with 300 random arrivals/s each log hundreds of thousands of gaps in a
// minute, and the run has none.
func TestTruthGapsTakeLittleMemory(t *testing.T) {
	t.Parallel()
	s := New("run", time.Time{}, testStep, []string{"get"}, 200)
	randomArrivals(t, s, 300, 200)
	kept := 0
	for _, list := range s.gapLists() {
		kept += len(*list)
	}
	truth.Report(t, "T5", "gaps kept of 200 pods with 300 random arrivals/s, after 20 s", "at most 20000",
		fmt.Sprint(kept), kept <= 20000)
	if gaps := s.Gaps(); len(gaps) != 0 {
		t.Errorf("%d gaps", len(gaps))
	}
}
