package report

import (
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/result"
)

func TestNumbers(t *testing.T) {
	for want, got := range map[string]string{
		"2.16 s": Duration(2_160_000_000), "65.5 ms": Duration(65_500_000), "31.4 µs": Duration(31_400),
		"2 min 14.3 s": Duration(134_300 * time.Millisecond), "0 s": Duration(0),
		"−11.2 s": Duration(-11_200 * time.Millisecond), "+2 s": Since(2 * time.Second), "−1 s": Since(-time.Second),
		"1 h 1 min": Duration(61 * time.Minute),
		"4,259":     Count(4259), "999": Count(999), "1,000,000": Count(1_000_000), "1,968.6/s": Rate(1968.6),
		"99.2 %": Share(.992), "−12.5 %": Change(-.125), "+340 %": Change(3.4),
		"12.3 MiB": Bytes(12_900_000), "4,096 B": Bytes(4096), "0.19 cores": Cores(187), "0.005 cores": Cores(5), "12.50 cores": Cores(12_500),
		"± 30 ms": Off(result.UnitSeconds, 2.16, 2.13, 2.17), "± 4": Off(result.UnitCount, 7, 3, 8),
		"": Off(result.UnitSeconds, 1, 1, 1),
	} {
		if got = strings.ReplaceAll(got, "\u00a0", " "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestFiguresWithoutAValue(t *testing.T) {
	for want, f := range map[string]Figure{
		"> 40 s":       {Unit: result.UnitSeconds, AtLeast: new(40.0)},
		"3–7":          {Unit: result.UnitCount, AtLeast: new(3.0), AtMost: new(7.0)},
		"not measured": {Unit: result.UnitCount},
		"1.5 s":        {Unit: result.UnitSeconds, Value: new(1.5)},
	} {
		if got := strings.ReplaceAll(f.Text(), "\u00a0", " "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Of JUnit: what is missed fails, and what is not conclusive never passes.
func TestJUnit(t *testing.T) {
	objective := func(j Judged) []Objective {
		return []Objective{{Name: "maxOutage", Unit: result.UnitSeconds, Limit: 1, Judged: j}}
	}
	for name, tc := range map[string]struct {
		d                Document
		failures, errors int
	}{
		"pass":                    {Document{Verdict: Pass, State: Complete, Objectives: objective(Met)}, 0, 0},
		"fail":                    {Document{Verdict: Fail, State: Complete, Objectives: objective(Missed)}, 1, 0},
		"fail without objectives": {Document{Verdict: Fail, State: Complete, Reason: "no request succeeded"}, 1, 0},
		"inconclusive by a doubt": {
			Document{
				Verdict:    Inconclusive,
				State:      Complete,
				Objectives: objective(Met),
				Doubts:     []Doubt{{Reason: "NoLoad", Message: "x"}},
			},
			0,
			1,
		},
		"inconclusive by a figure": {
			Document{Verdict: Inconclusive, State: Complete, Objectives: objective(NotJudged)},
			0,
			2,
		},
		"running":       {Document{State: Running}, 0, 1},
		"failed to run": {Document{State: Failed, Reason: "no pods"}, 0, 1},
	} {
		var b strings.Builder
		if err := WriteJUnit(&b, &tc.d); err != nil {
			t.Fatal(err)
		}
		if f, e := strings.Count(b.String(), "<failure "),
			strings.Count(b.String(), "<error "); f != tc.failures || e != tc.errors {
			t.Errorf("%s: %d failures and %d errors, want %d and %d:\n%s", name, f, e, tc.failures, tc.errors, b.String())
		}
	}
}

// The error of an inconclusive run is a sentence for each doubt, and nothing that points to a part of the report which
// JUnit does not have.
func TestJUnitListsDoubts(t *testing.T) {
	d := Document{Verdict: Inconclusive, Reason: "2 reasons not to trust the figures, under Doubts.", Doubts: []Doubt{
		{Reason: "StartSkew", Message: "the load pods started 3s apart (limit 1s)"},
		{Reason: "NoLoad", Of: "kill", Message: "nothing succeeded before it. Use a load."},
	}}
	var b strings.Builder
	if err := WriteJUnit(&b, &d); err != nil {
		t.Fatal(err)
	}
	if want := `message="StartSkew: the load pods started 3s apart (limit 1s). NoLoad of kill: nothing succeeded ` +
		`before it. Use a load."`; !strings.Contains(
		b.String(), want) {
		t.Errorf("%s is not in\n%s", want, b.String())
	}
}

func TestFenceIsLongerThanTheText(t *testing.T) {
	if got := fenceFor("a\n````\nb"); got != "`````" {
		t.Errorf("%q", got)
	}
}
