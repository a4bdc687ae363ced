package main

import (
	"slices"
	"strings"
	"testing"
)

// TestLimits: the limits are of cases and pairs of tools that are measured, each once, and have one bound.
func TestLimits(t *testing.T) {
	limits, err := readLimits()
	if err != nil {
		t.Fatal(err)
	}
	cases := allCases(400_000, 2_000_000)
	seen := map[limit]bool{}
	for _, l := range limits {
		i := slices.IndexFunc(cases, func(w work) bool { return w.name == l.Case })
		if i < 0 {
			t.Errorf("%+v is of no case", l)
			continue
		}
		if l.Against != againstBest && !slices.Contains(pairs, [2]string{nameRedquake, l.Against}) {
			t.Errorf("%+v: redquake is not compared with this tool", l)
		}
		if f := slices.IndexFunc(comparedFigures, func(f comparedFigure) bool { return f.name == l.Figure }); f < 0 ||
			!comparedFigures[f].in(&cases[i]) {
			t.Errorf("%+v: the figure is not compared in the case", l)
		}
		if (l.AtMost > 0) == (l.AtLeast > 0) {
			t.Errorf("%+v must have one bound", l)
		}
		if l.AtMost, l.AtLeast = 0, 0; seen[l] {
			t.Errorf("two limits are of %+v", l)
		}
		seen[l] = true
	}
}

// TestEveryToolIsCompared: each of the others may be the best of a case, so each has a ratio.
func TestEveryToolIsCompared(t *testing.T) {
	for _, tool := range tools(t.Context(), "", &options{}) {
		if !slices.Contains(ours, tool.name) && !slices.Contains(pairs, [2]string{nameRedquake, tool.name}) {
			t.Errorf("redquake is not compared with %s", tool.name)
		}
	}
}

func TestLimitTable(t *testing.T) {
	cpu := func(of string, ratioOf, low, high float64) ratio {
		return ratio{Case: of, Figure: figureCPU, One: nameRedquake, Other: nameFloor, Ratio: ratioOf, Low: low, High: high}
	}
	limits := []limit{{Case: "rate", Figure: figurePerSecond, Against: againstBest, AtLeast: 0.97}}
	for _, of := range []string{"within", "at the limit", "beyond", "perhaps", "two rounds", "left out"} {
		limits = append(limits, limit{Case: of, Figure: figureCPU, Against: nameFloor, AtMost: 1.08})
	}
	table, beyond, unknown := limitTable(limits, []result{
		{Case: "rate", Tool: nameRedquake, RequestsPerSecond: 99},
		{Case: "rate", Tool: nameFloor, RequestsPerSecond: 120},
		{Case: "rate", Tool: nameMemtier, RequestsPerSecond: 90},
		{Case: "rate", Tool: nameValkey, RequestsPerSecond: 100},
	}, []ratio{
		{Case: "rate", Figure: figurePerSecond, One: nameRedquake, Other: nameMemtier, Ratio: 1.1, Low: 1, High: 1.2},
		{Case: "rate", Figure: figurePerSecond, One: nameRedquake, Other: nameValkey, Ratio: 0.9, Low: 0.8, High: 0.96},
		cpu("within", 1.02, 0.9, 1.2), cpu("at the limit", 1.084, 1.08, 1.09), cpu("beyond", 1.2, 1.1, 1.3),
		cpu("perhaps", 1.1, 1.05, 1.2), cpu("two rounds", 1.1, 0, 0),
	})
	if beyond != 3 || unknown != 1 {
		t.Errorf("%d limits are missed and %d not measured, want 3 and 1", beyond, unknown)
	}
	for _, want := range []string{
		"| rate | requestsPerSecond | the best, valkey-benchmark | at least 0.97 | 0.90 (0.80 to 0.96) | **missed** |",
		"| within | cpu | floor | at most 1.08 | 1.02 (0.90 to 1.20) | met |", "| 1.08 (1.08 to 1.09) | met |",
		"| 1.20 (1.10 to 1.30) | **missed** |", "| 1.10 (1.05 to 1.20) | not decided by these rounds |",
		"| 1.10 | **missed** |", "| left out | cpu | floor | at most 1.08 | - | not measured |",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("%q is missing in\n%s", want, table)
		}
	}
}
