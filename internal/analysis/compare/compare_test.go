package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// made is an experiment of log-normal noise. ratio is how much greater c1 is than the others.
func made(seed uint64, cells, rounds int, ratio, noise float64) (Design, []Run) {
	random := rand.New(rand.NewPCG(seed, 1))
	d := Design{Cells: cells, RunsPerRound: cells, Baseline: 1, Comparisons: cells - 1}
	var runs []Run
	for round := range rounds {
		drift := 1 + 0.2*float64(round)/float64(rounds)
		for c := range cells {
			v := 1000 * drift * math.Exp(noise*random.NormFloat64())
			if c == 1 {
				v *= ratio
			}
			runs = append(runs, Run{Cell: fmt.Sprintf("c%d", c), Round: round, Value: v})
		}
	}
	return d, runs
}

func TestSwappedSidesMirror(t *testing.T) {
	t.Parallel()
	for _, rounds := range []int{3, 8, 12} { // by the model, and by ranks
		d, runs := made(7, 8, rounds, 1.1, 0.05)
		e := New(d, Throughput, runs)
		a, b := e.Compare("c1", "c2"), e.Compare("c2", "c1")
		if a.Method != b.Method || !near(a.Interval.Low, -b.Interval.High) || !near(a.Interval.High, -b.Interval.Low) ||
			!near(a.P, b.P) || !near(a.Shift, -b.Shift) {
			t.Errorf("%d rounds: %+v, swapped %+v", rounds, a, b)
		}
	}
}

func TestScaleAndOrderDoNotMatter(t *testing.T) {
	t.Parallel()
	for _, rounds := range []int{3, 12} {
		d, runs := made(8, 8, rounds, 0.9, 0.05)
		want := New(d, Throughput, runs).Compare("c1", "c0")
		scaled := slices.Clone(runs)
		for i := range scaled {
			scaled[i].Value *= 37
		}
		random := rand.New(rand.NewPCG(9, 9))
		shuffled := slices.Clone(runs)
		random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		for name, changed := range map[string][]Run{"scaled": scaled, "shuffled": shuffled} {
			got := New(d, Throughput, changed).Compare("c1", "c0")
			if got.Verdict != want.Verdict || !near(got.Interval.Low, want.Interval.Low) ||
				!near(got.Interval.High, want.Interval.High) {
				t.Errorf("%d rounds, %s: %+v, want %+v", rounds, name, got, want)
			}
		}
	}
}

func TestExactlyEqualRuns(t *testing.T) {
	t.Parallel()
	for _, rounds := range []int{1, 2, 3, 12} {
		var runs []Run
		for round := range rounds {
			for c := range 12 {
				runs = append(runs, Run{Cell: fmt.Sprintf("c%d", c), Round: round, Value: 5})
			}
		}
		e := New(Design{Cells: 12, RunsPerRound: 12, Baseline: 1, Comparisons: 11}, Throughput, runs)
		got := e.Compare("c1", "c0")
		if rounds == 1 && got.Reason != TooFewRepeats || rounds > 1 && got.Verdict != Same {
			t.Errorf("%d rounds: %+v", rounds, got)
		}
	}
}

// What a cell lacks is said, whatever else is known.
func TestNothingToCompare(t *testing.T) {
	t.Parallel()
	e := New(Design{Cells: 3, RunsPerRound: 3, Baseline: 1, Comparisons: 2}, RecoveryTime, []Run{
		{Cell: "a", Value: 1},
		{Cell: "b", Value: 1, Outcome: Dropped},
	})
	for _, pair := range [][2]string{{"a", "b"}, {"b", "a"}, {"none", "a"}, {"a", "none"}} {
		if got := e.Compare(pair[0], pair[1]); got.Verdict != Inconclusive || got.Reason != TooManyInconclusive {
			t.Errorf("%v: %+v", pair, got)
		}
	}
}

// All runs of one side were not over: worse by an amount of which only the least is known; of both sides, nothing is
// known.
func TestCensored(t *testing.T) {
	t.Parallel()
	var runs []Run
	for round := range 8 {
		for c := range 4 {
			r := Run{Cell: fmt.Sprintf("c%d", c), Round: round, Value: 10 + float64(round)}
			if c >= 2 {
				r.Value, r.Outcome = 120, Censored
			}
			runs = append(runs, r)
		}
	}
	e := New(Design{Cells: 4, RunsPerRound: 4, Baseline: 1, Comparisons: 3}, RecoveryTime, runs)
	if got := e.Compare("c2", "c0"); got.Verdict != Worse || !got.AtLeast || !math.IsInf(got.Interval.High, 1) ||
		got.Interval.Low < math.Log(120.0/17)-1e-9 || !got.MedianAtLeast {
		t.Errorf("%+v", got)
	}
	if got := e.Compare("c0", "c2"); got.Verdict != Better || !got.AtMost {
		t.Errorf("%+v", got)
	}
	if got := e.Compare("c2", "c3"); got.Verdict != Inconclusive || !math.IsNaN(got.Shift) || got.Needs != 0 {
		t.Errorf("%+v", got)
	}
}

func TestMessages(t *testing.T) {
	t.Parallel()
	d, runs := made(11, 12, 6, 0.25, 0.02)
	throughput := New(d, Throughput, runs)
	slow := New(d, LatencyP99, func() []Run {
		_, runs := made(12, 12, 6, 3, 0.02)
		for i := range runs {
			runs[i].Value /= 1e6
		}
		return runs
	}())
	lost := func(of ...float64) *Experiment {
		var runs []Run
		for round, n := range of {
			runs = append(runs, Run{Cell: "a", Round: round}, Run{Cell: "a", Round: round}, Run{
				Cell:  "b",
				Round: round,
				Value: n,
			})
		}
		return New(Design{Cells: 2, RunsPerRound: 3, Baseline: 2, Comparisons: 1}, LostWrites, runs)
	}
	dropped := func() *Experiment {
		d, runs := made(13, 4, 3, 0.25, 0.02)
		for i := range runs {
			if runs[i].Cell == "c2" || runs[i].Cell == "c3" {
				runs[i].Outcome = Dropped
			}
		}
		return New(d, Throughput, runs)
	}
	for want, got := range map[string]string{
		"inconclusive with 3 repeats; they would be enough if fewer runs of the other cells were inconclusive": dropped().Compare("c1", "c0").
			Message(Throughput, "a"),
		"throughput 75% lower than fsync=no (99.55%: -75.8% to -74.2%; 6 repeats against 6)": throughput.Compare("c1",
			"c0").Message(Throughput, "fsync=no"),
		"throughput same within 5% (90%: -2% to +1.5%)": throughput.Compare("c3",
			"c0").Message(Throughput, "fsync=no"),
		"latencyP99 3.0 times that of fsync=no (99.55%: 2.9 to 3.1 times; 6 repeats against 6)": slow.Compare("c1",
			"c0").Message(LatencyP99, "fsync=no"),
		"none in 3 and 6 repeats; up to 63.2% and 39.3% of such runs may have some (95%)": lost(0, 0, 0).
			Compare("b", "a").Message(LostWrites, "a"),
		"lostWrites in 3 of 3 repeats, against 0 of 6 of a (+10 to +30 more or fewer, 95%)": lost(10, 20, 30).
			Compare("b", "a").Message(LostWrites, "a"),
		"inconclusive with 2 repeats; needs at least 3 of each": lost(10, 20).
			Compare("b", "a").Message(LostWrites, "a"),
	} {
		if got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}

func TestRequirements(t *testing.T) {
	t.Parallel()
	limit := math.Log1p(0.05)
	cases := []struct {
		c            Comparison
		notWorse     string
		requiredSame string
	}{
		{Comparison{Verdict: Worse}, "missed", "missed"},
		{Comparison{Verdict: Better}, "met", "missed"},
		{Comparison{Verdict: Same}, "met", "met"},
		{Comparison{Verdict: Inconclusive}, "unknown", "unknown"},
		{Comparison{Verdict: Inconclusive, Reason: NoneSeen}, "met", "met"},
		{Comparison{Verdict: Inconclusive, Method: Model, Margin: 0.05, Same: Interval{-limit * 0.9, 1}}, "met", "unknown"},
		{Comparison{Verdict: Inconclusive, Method: Model, Margin: 0.05, Same: Interval{-limit * 1.1, 0}}, "unknown", "unknown"},
	}
	word := func(met, known bool) string {
		switch {
		case !known:
			return "unknown"
		case met:
			return "met"
		}
		return "missed"
	}
	for i, test := range cases {
		if got := word(test.c.Met(RequireNotWorse, Throughput)); got != test.notWorse {
			t.Errorf("%d: NotWorse is %s, want %s", i, got, test.notWorse)
		}
		if got := word(test.c.Met(RequireSame, Throughput)); got != test.requiredSame {
			t.Errorf("%d: Same is %s, want %s", i, got, test.requiredSame)
		}
	}
}

// Against an earlier experiment a difference inside the margin is not claimed, one beyond it is; a cell's own change
// shows beside its baseline, too.
func TestAgainst(t *testing.T) {
	t.Parallel()
	d, then := made(20, 12, 8, 1, 0.01)
	for ratio, want := range map[float64]Verdict{1: Same, 0.99: Same, 0.96: Inconclusive, 0.8: Worse, 1.3: Better} {
		_, now := made(21, 12, 8, ratio, 0.01)
		e, earlier := New(d, Throughput, now), New(d, Throughput, then)
		got := e.Against(earlier, "c1", 12)
		if got.Verdict != want {
			t.Errorf("at %v times: %+v, want %s", ratio, got, want)
		}
		shifted, of, ok := e.Relative(earlier, "c1", "c0")
		if !ok || math.Abs(shifted-math.Log(ratio)) > 0.03 || of.Low > shifted || of.High < shifted {
			t.Errorf("at %v times: relative %v in %v", ratio, shifted, of)
		}
	}
	_, now := made(22, 12, 8, 1, 0.01)
	for i := range now {
		now[i].Value *= 0.7 // another machine
	}
	e, earlier := New(d, Throughput, now), New(d, Throughput, then)
	var all []Comparison
	for c := range 12 {
		all = append(all, e.Against(earlier, fmt.Sprintf("c%d", c), 12))
	}
	if got := OfAll(all); math.Abs(got-math.Log(0.7)) > 0.02 {
		t.Errorf("all cells changed by %v", got)
	}
	if shifted, _, _ := e.Relative(earlier, "c1", "c0"); math.Abs(shifted) > 0.02 {
		t.Errorf("relative to its baseline %v", shifted)
	}
}

func FuzzCompare(f *testing.F) {
	f.Add(uint64(1), 4, 3, 0.5, 0.1, byte(0))
	f.Add(uint64(2), 12, 6, 4.0, 0.5, byte(255))
	f.Fuzz(func(t *testing.T, seed uint64, cells, rounds int, ratio, noise float64, spoilt byte) {
		if cells < 1 || cells > 15 || rounds < 1 || rounds > 12 || math.IsNaN(noise) || math.Abs(noise) > 5 {
			return
		}
		d, runs := made(seed, cells, rounds, ratio, noise)
		random := rand.New(rand.NewPCG(seed, 2))
		for i := range runs {
			switch random.IntN(1 + int(spoilt)) {
			case 1:
				runs[i].Outcome = Dropped
			case 2:
				runs[i].Outcome = Censored
			case 3:
				runs[i].Value = 0
			}
		}
		for _, figure := range Figures() {
			e := New(d, figure, runs)
			for c := range cells {
				got := e.Compare(fmt.Sprintf("c%d", c), "c0")
				if got.Message(figure, "c0") == "" || got.P < 0 || got.P > 1 || got.Interval.Low > got.Interval.High ||
					got.Needs < 0 {
					t.Fatalf("%+v", got)
				}
				e.Against(e, fmt.Sprintf("c%d", c), cells)
			}
		}
	})
}
