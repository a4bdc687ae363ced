package main

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

//go:embed limits.yaml
var limitsFile []byte

// against is the tool of a limit that is the best of all others, by requests/s.
const againstBest = "best"

// limit is what the ratio of a figure of redquake to that of another tool must not exceed, or not
// fall below.
type limit struct {
	Case    string  `json:"case"`
	Figure  string  `json:"figure"`
	Against string  `json:"against"`
	AtMost  float64 `json:"atMost"`  // 0 = none
	AtLeast float64 `json:"atLeast"` // 0 = none
}

func readLimits() (limits []limit, err error) {
	if err := yaml.UnmarshalStrict(limitsFile, &limits); err != nil {
		return nil, fmt.Errorf("limits.yaml: %w", err)
	}
	return limits, nil
}

// Verdicts on a limit.
const (
	met        = "met"
	undecided  = "not decided by these rounds"
	missed     = "**missed**"
	unmeasured = "not measured"
)

// judge returns the verdict on a limit. It is met if the estimate is within it, as it is shown, and
// missed if all of the interval is beyond it.
func (l *limit) judge(r *ratio) string {
	beyond := func(of float64) bool {
		shown := float64(int(100*of+0.5)) / 100
		return l.AtMost > 0 && shown > l.AtMost || l.AtLeast > 0 && shown < l.AtLeast
	}
	switch {
	case !beyond(r.Ratio):
		return met
	case r.High == 0 || beyond(r.Low) && beyond(r.High):
		return missed
	}
	return undecided
}

// find returns the ratio that a limit is about; nil if it was not measured.
func (l *limit) find(results []result, ratios []ratio) *ratio {
	other := l.Against
	if other == againstBest {
		other = bestOf(results, l.Case)
	}
	i := slices.IndexFunc(ratios, func(r ratio) bool {
		return r.Case == l.Case && r.Figure == l.Figure && r.One == nameRedquake && r.Other == other
	})
	if i < 0 {
		return nil
	}
	return &ratios[i]
}

// bestOf is the load generator of others with the most requests/s in a case; "" if there is none.
func bestOf(results []result, of string) string {
	var best result
	for _, r := range results {
		if r.Case == of && !slices.Contains(ours, r.Tool) && r.RequestsPerSecond > best.RequestsPerSecond {
			best = r
		}
	}
	return best.Tool
}

// limitTable has a line for each limit, and returns how many are missed, and how many were not
// measured.
func limitTable(
	limits []limit, results []result, ratios []ratio,
) (table string, beyond, unknown int) {
	var b strings.Builder
	b.WriteString("| case | figure | against | limit | ratio | verdict |\n| --- | --- | --- | ---: | ---: | --- |\n")
	for i := range limits {
		l := &limits[i]
		bound := fmt.Sprintf("at most %.2f", l.AtMost)
		if l.AtLeast > 0 {
			bound = fmt.Sprintf("at least %.2f", l.AtLeast)
		}
		text, verdict, other := "-", unmeasured, l.Against
		if r := l.find(results, ratios); r != nil {
			text, verdict = r.String(), l.judge(r)
			if other == againstBest {
				other = "the best, " + r.Other
			}
		}
		switch verdict {
		case missed:
			beyond++
		case unmeasured:
			unknown++
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", l.Case, l.Figure, other, bound, text, verdict)
	}
	return b.String(), beyond, unknown
}
