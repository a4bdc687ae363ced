package search

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/analysis/summary"
)

var spec = Spec{
	From:      1000,
	To:        1 << 30,
	Precision: 0.05,
	Settle:    2 * time.Second,
	Trial:     10 * time.Second,
	Requests:  1000,
}

// conduct runs a search on a server with a capacity in requests/s; chance returns whether a trial fails nevertheless.
func conduct(t *testing.T, s Spec, capacity float64, chance func(trial int) bool) ([]Trial, Next) {
	t.Helper()
	var trials []Trial
	now := time.Duration(0)
	for range MaxTrials + 1 {
		next := s.Next(trials)
		if next.Over {
			return trials, next
		}
		if next.Rate <= 0 || next.Rate > s.To || next.Rate != math.Trunc(next.Rate) {
			t.Fatalf("trial %d at %v: %s", len(trials), next.Rate, next.Message)
		}
		trials = append(trials, Trial{Rate: next.Rate, At: now})
		if again := s.Next(trials); again.Rate != 0 || again.Over {
			t.Fatalf("while trial %d is under way: %+v", len(trials), again)
		}
		from, to := s.Window(trials[len(trials)-1])
		judge := func(trial Trial, f, u time.Duration) Judgement {
			if f != from || u != to {
				t.Fatalf("judged by %v to %v, the window is %v to %v", f, u, from, to)
			}
			return Judgement{
				Met: trial.Rate <= capacity && !(chance != nil && chance(len(trials))),
				Why: "maxLatencyP99 is 9s, limit 5ms",
			}
		}
		if _, judged := s.Judge(trials, to-1, judge); judged {
			t.Fatal("judged before its window was known")
		}
		if _, judged := s.Judge(trials, to, judge); !judged {
			t.Fatal("not judged though its window is known")
		}
		if _, judged := s.Judge(trials, to, judge); judged {
			t.Fatal("judged twice")
		}
		now = Begin(to, 100*time.Millisecond)
	}
	t.Fatal("the search does not end")
	return nil, Next{}
}

func TestSearchFindsTheCapacity(t *testing.T) {
	for range 500 {
		capacity := math.Exp(rand.Float64()*14) * 20 // 20 to 24 million
		trials, next := conduct(t, spec, capacity, nil)
		if next.Found > capacity || capacity > next.Found*(1+spec.Precision)+1 {
			t.Fatalf("found %v of %v: %s", next.Found, capacity, next.Message)
		}
		if best, ok := Best(trials); !ok || best.Rate != next.Found || !best.Met {
			t.Fatalf("best is %+v, found %v", best, next.Found)
		}
		if len(trials) > 40 {
			t.Errorf("%d trials for %v", len(trials), capacity)
		}
	}
}

func TestOneBadTrialDoesNotCapTheSearch(t *testing.T) {
	for bad := 1; bad < 12; bad++ {
		_, next := conduct(t, spec, 50_000, func(trial int) bool { return trial == bad })
		if next.Found > 50_000 || next.Found*1.05 < 50_000 {
			t.Errorf("trial %d stalled: found %v of 50000: %s", bad, next.Found, next.Message)
		}
	}
}

func TestSearchEndsWhenEveryRateFails(t *testing.T) {
	trials, next := conduct(t, spec, 0, nil)
	if next.Found != 0 || !strings.Contains(next.Message, "maxLatencyP99 is 9s") {
		t.Errorf("found %v: %s", next.Found, next.Message)
	}
	best, ok := Best(trials)
	if !ok || best.Rate != trials[len(trials)-1].Rate {
		t.Errorf("the figures are those of %+v, want the last", best)
	}
	tiny := spec
	tiny.From = 3
	if _, next := conduct(t, tiny, 0, nil); next.Found != 0 {
		t.Errorf("found %v", next.Found)
	}
}

func TestSearchStopsAtTheMaximumRate(t *testing.T) {
	s := spec
	s.To = 3500
	trials, next := conduct(t, s, 1e9, nil)
	if next.Found != 3500 || len(trials) != 4 {
		t.Errorf("found %v after %d trials, want 3500 after 1000, 2000, 3500, 3500", next.Found, len(trials))
	}
}

func TestSearchEndsWithRandomResults(t *testing.T) {
	for range 200 {
		trials, next := conduct(t, spec, 1e12, func(int) bool { return rand.IntN(2) == 0 })
		if !next.Over || len(trials) > MaxTrials || next.Done == (len(trials) == MaxTrials) {
			t.Fatalf("%d trials: %s", len(trials), next.Message)
		}
	}
}

func TestVoidTrialIsDiscarded(t *testing.T) {
	trials := []Trial{{Rate: 1000, Judged: true, Met: true}, {Rate: 2000, At: time.Minute}}
	left, judged := spec.Judge(trials, time.Hour, func(Trial, time.Duration, time.Duration) Judgement {
		return Judgement{
			Void: true,
		}
	})
	if next := spec.Next(left); !judged || len(left) != 1 || next.Rate != 2000 {
		t.Errorf("%d trials are left, next is %v", len(left), next.Rate)
	}
}

func TestWindowsOutsideOfTheDecisiveTrials(t *testing.T) {
	trials := []Trial{
		{Rate: 1000, At: 0, Judged: true, Met: true},
		{Rate: 2000, At: time.Minute, Judged: true},
		{Rate: 2000, At: 2 * time.Minute, Judged: true},
		{Rate: 1414, At: 3 * time.Minute, Judged: true},
		{Rate: 1414, At: 4 * time.Minute, Judged: true},
		{Rate: 1189, At: 5 * time.Minute, Judged: true},
	}
	const after = 12 * time.Second // settle and trial
	want := []summary.Window{
		{To: 3*time.Minute + spec.Settle},
		{From: 3*time.Minute + after, To: 4*time.Minute + spec.Settle},
		{From: 4*time.Minute + after, To: math.MaxInt64},
	}
	if got := spec.Elsewhere(trials); !slices.Equal(got, want) {
		t.Errorf("all but the two trials of 1414/s is %v, want %v", got, want)
	}
	want = []summary.Window{{To: spec.Settle}, {From: after, To: math.MaxInt64}}
	if got := spec.Elsewhere(trials[:1]); !slices.Equal(got, want) {
		t.Errorf("all but the best trial is %v, want %v", got, want)
	}
}

func TestWindowHoldsEnoughRequests(t *testing.T) {
	for rate, want := range map[float64]time.Duration{
		10:  100 * time.Second,
		99:  11 * time.Second,
		100: 10 * time.Second,
		1e6: 10 * time.Second,
	} {
		from, to := spec.Window(Trial{Rate: rate, At: time.Minute})
		if from != 62*time.Second || to-from != want {
			t.Errorf("%v/s: %v to %v, want %v from 62s on", rate, from, to, want)
		}
	}
}

func TestBeginIsAMultipleOfTheInterval(t *testing.T) {
	for _, now := range []time.Duration{0, 1, 12*time.Second + 345*time.Millisecond, 12500 * time.Millisecond} {
		at := Begin(now, 100*time.Millisecond)
		if at%(100*time.Millisecond) != 0 || at < now+Lead || at >= now+Lead+100*time.Millisecond {
			t.Errorf("decided at %v, begins at %v", now, at)
		}
	}
}
