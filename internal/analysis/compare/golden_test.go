package compare

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// number is a number, or "+Inf", "-Inf"; null is NaN.
type number float64

func (n *number) UnmarshalJSON(data []byte) error {
	switch string(data) {
	case `"+Inf"`:
		*n = number(math.Inf(1))
	case `"-Inf"`:
		*n = number(math.Inf(-1))
	case "null":
		*n = number(math.NaN())
	default:
		return json.Unmarshal(data, (*float64)(n))
	}
	return nil
}

// goldenRun is [cell, round, value | null | "censored"].
type goldenRun Run

func (r *goldenRun) UnmarshalJSON(data []byte) error {
	var parts [3]json.RawMessage
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	if err := json.Unmarshal(parts[0], &r.Cell); err != nil {
		return err
	}
	if err := json.Unmarshal(parts[1], &r.Round); err != nil {
		return err
	}
	switch string(parts[2]) {
	case "null":
		r.Outcome = Dropped
	case `"censored"`:
		r.Outcome = Censored
	default:
		return json.Unmarshal(parts[2], &r.Value)
	}
	return nil
}

// golden is testdata/golden.json: values by scipy 1.16 and numpy 2.2, and by a program of its own for whole
// comparisons.
type golden struct {
	MannWhitney []struct {
		X, Y []number
		U, P float64
	}
	CriticalOrder []struct {
		N1, N2, K int
		Alpha     float64
	}
	HodgesLehmann []struct {
		X, Y             []number
		CensoredAt       float64
		Alpha            float64
		Shift, Low, High number
	}
	NoneSeenUpper95 []struct {
		N     int
		Upper float64
	}
	StudentT   []struct{ P, DF, T float64 }
	NeedsFloor []struct {
		Comparisons, Cells, BaselinePerRound, RunsPerRound, Repeats int
		RanksOnly                                                   bool
	}
	Model []struct {
		Runs         []goldenRun
		Effects, Own map[string]float64
		Variance     float64
		DF           int
	}
	Compare []struct {
		Name, Figure, Baseline        string
		Comparisons, BaselinePerRound int
		Deadline                      *float64
		Margins                       struct{ Relative, Absolute, Floor *float64 }
		Runs                          []goldenRun
		Expect                        []expected
	}
	ChangePointThresholds struct {
		Start, Window int
		H             []float64
	}
	ChangePoints []struct {
		Name   string
		Margin float64
		Values []float64
		Alarms []struct {
			Alarm, Change int
			Rule          Rule
			LogRatio      float64
		}
	}
}

type expected struct {
	Cell                                                                                     string
	N, NBaseline, Dropped, DF, Needs                                                         int
	Median, MedianBaseline, S2, SE, P, LogRatio, Shift, Low, High, SameLow, SameHigh, Margin *number
	Method                                                                                   Method
	Verdict                                                                                  Verdict
	Reason                                                                                   Reason
	Upper, UpperBaseline                                                                     *number
}

func readGolden(t *testing.T) golden {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "golden.json"))
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(data, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

// near is the tolerance of the golden values: relative above 1.
func near(a, b float64) bool {
	return a == b || math.Abs(a-b) <= 1e-8*max(1, math.Abs(b))
}

func floats(values []number) []float64 {
	all := make([]float64, len(values))
	for i, v := range values {
		all[i] = float64(v)
	}
	return all
}

func TestGoldenMannWhitney(t *testing.T) {
	t.Parallel()
	for _, c := range readGolden(t).MannWhitney {
		if u, p := mannWhitney(floats(c.X), floats(c.Y)); !near(u, c.U) || !near(p, c.P) {
			t.Errorf("%v against %v: U %v, p %v; want %v, %v", c.X, c.Y, u, p, c.U, c.P)
		}
	}
}

func TestGoldenCriticalOrder(t *testing.T) {
	t.Parallel()
	for _, c := range readGolden(t).CriticalOrder {
		if k := criticalOrder(c.N1, c.N2, c.Alpha); k != c.K {
			t.Errorf("%d against %d at %v: %d, want %d", c.N1, c.N2, c.Alpha, k, c.K)
		}
	}
}

func TestGoldenHodgesLehmann(t *testing.T) {
	t.Parallel()
	for i, c := range readGolden(t).HodgesLehmann {
		logs := func(values []number) []span {
			var all []span
			for _, v := range values {
				s := exactly(math.Log(float64(v)))
				if math.IsNaN(float64(v)) {
					s = span{math.Log(c.CensoredAt), math.Inf(1)}
				}
				all = append(all, s)
			}
			return all
		}
		x, y := logs(c.X), logs(c.Y)
		r := Comparison{Alpha: c.Alpha}
		r.rank(x, y)
		if !near(r.Shift, float64(c.Shift)) || !near(r.Interval.Low, float64(c.Low)) ||
			!near(r.Interval.High, float64(c.High)) {
			t.Errorf("%d: shift %v in %v; want %v in %v to %v", i, shift(x, y), r.Interval, c.Shift, c.Low, c.High)
		}
	}
}

func TestGoldenDistributions(t *testing.T) {
	t.Parallel()
	g := readGolden(t)
	for _, c := range g.NoneSeenUpper95 {
		if got := UpperOfNone(c.N); !near(got, c.Upper) {
			t.Errorf("none in %d: up to %v, want %v", c.N, got, c.Upper)
		}
	}
	for _, c := range g.StudentT {
		if got := (distuv.StudentsT{Sigma: 1, Nu: c.DF}).Quantile(c.P); !near(got, c.T) {
			t.Errorf("t(%v; %v) = %v, want %v", c.P, c.DF, got, c.T)
		}
	}
	if h := g.ChangePointThresholds; h.Start != ranksAfter || h.Window != window || !slices.Equal(h.H, thresholds[:]) {
		t.Errorf("thresholds %v, want %v from %d to %d", thresholds, h.H, h.Start, h.Window)
	}
}

func TestGoldenNeeds(t *testing.T) {
	t.Parallel()
	for _, c := range readGolden(t).NeedsFloor {
		d := Design{Cells: c.Cells, RunsPerRound: c.RunsPerRound, Baseline: c.BaselinePerRound, Comparisons: c.Comparisons}
		if got := d.repeatsNeeded(c.RanksOnly); got != c.Repeats {
			t.Errorf("%+v: %d repeats, want %d", c, got, c.Repeats)
		}
	}
}

func TestGoldenModel(t *testing.T) {
	t.Parallel()
	for i, c := range readGolden(t).Model {
		var samples []sample
		for _, r := range c.Runs {
			if r.Outcome == Conclusive {
				samples = append(samples, sample{r.Cell, r.Round, math.Log(r.Value)})
			}
		}
		m := fit(samples)
		if m.df != c.DF || !near(m.variance, c.Variance) {
			t.Errorf("%d: variance %v, df %d; want %v, %d", i, m.variance, m.df, c.Variance, c.DF)
		}
		for cell, want := range c.Effects {
			if got := m.effects[cell] - m.effects["c0"]; !near(got, want) || !near(m.own[cell], c.Own[cell]) {
				t.Errorf("%d, %s: effect %v, variance %v; want %v, %v", i, cell, got, m.own[cell], want, c.Own[cell])
			}
		}
	}
}

func TestGoldenCompare(t *testing.T) {
	t.Parallel()
	compared := 0
	for _, c := range readGolden(t).Compare {
		f := Figure{Name: c.Figure, HigherIsBetter: c.Figure == "throughput", Counted: c.Margins.Floor == nil}
		if !f.Counted {
			f.Floor, f.Margin = *c.Margins.Floor, Margin{*c.Margins.Relative, *c.Margins.Absolute}
		}
		var runs []Run
		perRound, cells := map[int]int{}, map[string]bool{}
		for _, r := range c.Runs {
			if r.Outcome == Censored {
				r.Value = *c.Deadline
			}
			runs = append(runs, Run(r))
			perRound[r.Round]++
			cells[r.Cell] = true
		}
		e := New(Design{
			Cells:        len(cells),
			RunsPerRound: perRound[0],
			Baseline:     c.BaselinePerRound,
			Comparisons:  c.Comparisons,
		}, f, runs)
		for _, want := range c.Expect {
			compared++
			got := e.Compare(want.Cell, c.Baseline)
			if got.Verdict != want.Verdict || got.Reason != want.Reason || got.Needs != want.Needs ||
				got.Method != want.Method && want.Method != "" ||
				got.Repeats != want.N || got.BaselineRepeats != want.NBaseline || got.Dropped+got.BaselineDropped != want.Dropped ||
				got.Method == Model && got.DF != want.DF {
				t.Errorf("%s, %s: %+v, want %+v", c.Name, want.Cell, got, want)
			}
			for name, pair := range map[string]struct {
				got  float64
				want *number
			}{
				"median":            {got.Median, want.Median},
				"baseline's median": {got.BaselineMedian, want.MedianBaseline},
				"s2":                {got.Variance, want.S2},
				"SE":                {got.SE, want.SE},
				"p":                 {got.P, want.P},
				"shift":             {got.Shift, want.LogRatio},
				"count's shift":     {got.Shift, want.Shift},
				"low":               {got.Interval.Low, want.Low},
				"high":              {got.Interval.High, want.High},
				"same low":          {got.Same.Low, want.SameLow},
				"same high":         {got.Same.High, want.SameHigh},
				"margin":            {got.Margin, want.Margin},
				"upper":             {got.Upper, want.Upper},
				"baseline's upper":  {got.BaselineUpper, want.UpperBaseline},
			} {
				if pair.want != nil && !near(pair.got, float64(*pair.want)) {
					t.Errorf("%s, %s: %s is %v, want %v", c.Name, want.Cell, name, pair.got, *pair.want)
				}
			}
		}
	}
	if compared != 38 {
		t.Errorf("%d comparisons", compared)
	}
}

func TestGoldenChanges(t *testing.T) {
	t.Parallel()
	for _, c := range readGolden(t).ChangePoints {
		got := Changes(c.Values, c.Margin)
		if len(got) != len(c.Alarms) {
			t.Errorf("%s: %+v, want %+v", c.Name, got, c.Alarms)
			continue
		}
		for i, want := range c.Alarms {
			if g := got[i]; g.Alarm != want.Alarm || g.At != want.Change || g.Rule != want.Rule ||
				!near(g.Shift, want.LogRatio) {
				t.Errorf("%s: %+v, want %+v", c.Name, g, want)
			}
		}
	}
}
