package oracle

import (
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquake/redquake/internal/analysis/impact"
)

// TestPlantedMutantsAreFound: the figures of histories that the analysis gets right pass; each of them made false is
// found, and only that one. What is doubted is no falsehood.
func TestPlantedMutantsAreFound(t *testing.T) {
	t.Parallel()
	refused := calm(Event{Way: Refuse, At: 0, For: 600 * ms, Only: All})
	lost := &History{
		Rate:     200,
		Pods:     2,
		Shards:   1,
		Reads:    1,
		Writes:   1,
		Ledger:   0.1,
		Timeout:  time.Second,
		Baseline: 20 * time.Second,
		Observed: 20 * time.Second,
		Hold:     2 * time.Second,
		Harmless: 10 * time.Second,
		Events:   []Event{{Way: Lose, At: -500 * ms, For: 700 * ms, Only: All}},
	}
	for name, tt := range map[string]struct {
		h       *History
		mutants map[string]Figure
	}{
		"refused": {refused, map[string]Figure{
			Outage:       exactly(0),
			OutageLoad:   exactly(0.3),
			OutageProbe:  exactly(0),
			TotalOutage:  exactly(0.2),
			Recovery:     exactly(0.4),
			TimeToImpact: {},
			Dip:          exactly(0.9),
			BaselineRate: exactly(800),
			LostRequests: exactly(5000),
			Throughput:   exactly(700),
		}},
		"not recovered": {refused, map[string]Figure{Recovery: {math.Inf(1), 5, math.Inf(1), true}}},
		"recovered too late": {
			refused,
			map[string]Figure{Recovery: exactly(1.2), Outage: exactly(1), TimeToImpact: exactly(0.5)},
		},
		"nothing": {calm(), map[string]Figure{
			Outage: exactly(0.1), OutageLoad: exactly(0.1), OutageProbe: exactly(0.1), TotalOutage: exactly(0.1),
			Recovery: exactly(0.1), TimeToImpact: exactly(0), Dip: exactly(0.5),
			Errors: exactly(1), ErrorRate: exactly(0.1), LostRequests: exactly(100),
		}},
		"lost": {lost, map[string]Figure{LostWrites: exactly(0), LostHarmless: exactly(14), LostInTheLoad: exactly(3)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				played := Play(t, tt.h)
				truth, figures := TruthOf(tt.h, played.Lost), Analyze(tt.h, played)
				if found, compared := Compare(truth, figures); len(found) > 0 || compared < 10 ||
					len(figures.Fault)+len(figures.LoadTest) > 0 {
					t.Fatalf("%v of %d figures, doubts %v, %v", found, compared, figures.Fault, figures.LoadTest)
				}
				for figure, mutant := range tt.mutants {
					right := figures.Of[figure]
					figures.Of[figure] = mutant
					if found, _ := Compare(truth, figures); len(found) != 1 || found[0].Figure != figure || found[0].Doubted {
						t.Errorf("%s is said to be %v: found %v", figure, mutant, found)
					}
					figures.Fault, figures.LoadTest = make([]impact.Doubt, 1), make([]impact.Doubt, 1)
					if found, _ := Compare(truth, figures); len(found) != 1 || !found[0].Doubted {
						t.Errorf("%s is said to be %v, and doubted: found %v", figure, mutant, found)
					}
					figures.Of[figure], figures.Fault, figures.LoadTest = right, nil, nil
				}
			})
		})
	}
}

// TestEveryWayIsPlayed: each way does to the load what the truth takes it to do, as the requests that succeeded in each
// tenth of a second show.
func TestEveryWayIsPlayed(t *testing.T) {
	t.Parallel()
	const at, length = time.Second, 400 * ms
	for way, want := range map[Way]struct{ share float64 }{
		Stop:      {0},
		Hold:      {0},
		Refuse:    {0},
		Loading:   {0},
		ReadOnly:  {0.5},
		FailReads: {0.5},
		Lower:     {0.5},
		Stall:     {0},
		Starve:    {0.5},
	} {
		t.Run(way.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := calm(Event{Way: way, At: at, For: length, Only: All, Share: 0.5})
				h.Reads, h.Probe = 1, 0
				if way == Lower || way == Starve { // the rate of an open loop does not depend on them
					h.Rate, h.Users, h.Cost = 0, 1, ms
				}
				s := Play(t, h).Series
				ok := uint64(0)
				first := int((h.Baseline + at) / interval)
				for i := first; i < first+int(length/interval)-1; i++ { // at its end, what waited is answered
					for _, o := range s.At(i).Ops {
						ok += o.OK
					}
				}
				if got := float64(ok) / 300; math.Abs(got-want.share) > 0.1 {
					t.Errorf("%.2f of the requests succeeded, want %.2f", got, want.share)
				}
			})
		})
	}
}

// TestDriftIsPlayed: the level rises until the fault, and stays.
func TestDriftIsPlayed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := calm(Event{Way: Drift, At: -4 * time.Second, For: 4 * time.Second, Only: All, Share: 0.25})
		h.Rate, h.Users, h.Cost, h.Probe = 0, 1, ms, 0
		s := Play(t, h).Series
		for i, want := range map[int]float64{0: 80, 20: 89, 39: 99.5, 45: 100, 79: 100} {
			if got := float64(s.At(i).Ops[0].OK); math.Abs(got-want) > 2 {
				t.Errorf("%.0f requests succeeded in interval %d, want %.0f", got, i, want)
			}
		}
	})
}

// TestVerdict: what is doubted is no falsehood, and a stall about an outage is doubted.
func TestVerdict(t *testing.T) {
	t.Parallel()
	v := &Verdict{Findings: []Finding{{Figure: Outage}, {Figure: Dip, Doubted: true}}}
	if got := v.False(); len(got) != 1 || got[0].Figure != Outage {
		t.Errorf("%v", got)
	}
	synctest.Test(t, func(t *testing.T) {
		h := calm(stop(0, 300*ms), Event{Way: Stall, At: -100 * ms, For: 250 * ms, Only: All})
		v := Check(t, h)
		if !v.Doubted || !slices.Contains(v.Doubts, impact.GeneratorStalled) || v.Figures < 10 || len(v.False()) > 0 {
			t.Errorf("%+v", v)
		}
	})
	if s := (Finding{Outage, Range{Lo: 0.5, Hi: 0.6}, exactly(0), true}).String(); !strings.Contains(s,
		"outage: reported 0 [0, 0], true 0.5 to 0.6, doubted") {
		t.Error(s)
	}
}
