package search

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/testing/truth"
)

// Near its capacity a server meets the objectives by chance: at a rate of capacity in every second trial, 10 % above in
// every eighth. What is found should be met again more often than not.
func TestTruthFoundRateIsMetAgain(t *testing.T) {
	const capacity, searches = 50_000, 2000
	probability := func(rate float64) float64 { return 1 / (1 + math.Exp(20*(rate/capacity-1))) }
	random := rand.New(rand.NewPCG(1, 2))
	sum, below := 0.0, 0
	for range searches {
		var trials []Trial
		next := spec.Next(trials)
		for ; !next.Over; next = spec.Next(trials) {
			trials = append(trials, Trial{Rate: next.Rate, Judged: true, Met: random.Float64() < probability(next.Rate)})
		}
		p := probability(next.Found)
		sum += p
		if p < 1.0/3 {
			below++
		}
	}
	mean := sum / searches
	truth.Report(t, "T17", "2,000 searches at a server that meets the objectives by chance near its capacity",
		"met again more often than not",
		fmt.Sprintf("met again with a probability of %.2f, below one in three after %d searches", mean, below), mean > 0.5)
}

// A rate that was met in one of two trials has to be met in a third.
func TestFinalRateIsConfirmed(t *testing.T) {
	judged := func(rate float64, met bool) Trial { return Trial{Rate: rate, Judged: true, Met: met, Why: "late"} }
	trials := []Trial{
		judged(1000, true), judged(2000, false), judged(2000, false), judged(1414, true),
		judged(1682, false), judged(1682, false),
		judged(1542, false), judged(1542, false), judged(1477, false), judged(1477, true),
	}
	next := spec.Next(trials) // 1,477 and 1,542 are within the precision
	if next.Rate != 1477 || next.Over || next.Found != 1477 {
		t.Fatalf("after one success of two: %+v", next)
	}
	if next := spec.Next(append(trials, judged(1477, true))); !next.Done || next.Found != 1477 {
		t.Errorf("after two of three: %+v", next)
	}
	next = spec.Next(append(trials, judged(1477, false)))
	if next.Rate != 1414 || next.Found != 1414 {
		t.Errorf("after one of three: %+v", next)
	}
	if best, ok := Best(append(trials, judged(1477, false))); !ok || best.Rate != 1414 {
		t.Errorf("the figures are those of %+v", best)
	}
	if next := spec.Next(append(trials, judged(1477, false), judged(1414, true))); !next.Done || next.Found != 1414 {
		t.Errorf("after the rate below was confirmed: %+v", next)
	}
	none := []Trial{judged(1000, true), judged(2000, false), judged(2000, false), {Rate: 1414, At: time.Minute}}
	if next := spec.Next(none); next.Rate != 0 || next.Over {
		t.Errorf("during a trial: %+v", next)
	}
}
