package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// The aims: the CPU per request as a share of memtier_benchmark's, and what bounds may cost.
const (
	aimSingle = 0.50 // without a pipeline
	aimPiped  = 0.35
	aimBounds = 1.02 // CPU per request with bounds, divided by that without
)

// reading tells what the tables show about the aims, in their own figures.
func reading(results []result, ratios []ratio) string {
	var b strings.Builder
	piped, open := map[string]bool{}, map[string]bool{}
	for _, r := range results {
		piped[r.Case], open[r.Case] = r.Pipelined, r.Open
	}
	var lines []string
	for _, r := range ratios {
		if r.Figure != figureCPU || r.One != nameRedquake || r.Other != nameMemtier {
			continue
		}
		aim, verdict := aimSingle, "missed"
		if piped[r.Case] {
			aim = aimPiped
		}
		if math.Round(100*r.Ratio) <= 100*aim { // as it is shown
			verdict = "reached"
		}
		lines = append(lines, fmt.Sprintf("%s %.2f (aim %.2f %s)", r.Case, r.Ratio, aim, verdict))
	}
	writeReading(&b, "CPU per request beside memtier_benchmark", lines)
	most, less := mostRequests(results, open)
	writeReading(&b, "Redquake has the most requests/s in", most)
	writeReading(&b, "It has not in", less)
	lines = nil
	for _, r := range ratios {
		if r.Figure == figureCPU && r.One == nameRedquake && r.Other == nameUnbounded {
			lines = append(lines, fmt.Sprintf("%s %s, %s", r.Case, r.String(), boundsVerdict(&r)))
		}
	}
	writeReading(&b, fmt.Sprintf("CPU per request with bounds beside a build without (at most %.2f)",
		aimBounds), lines)
	return b.String()
}

func writeReading(b *strings.Builder, title string, lines []string) {
	if len(lines) > 0 {
		fmt.Fprintf(b, "- %s: %s.\n", title, strings.Join(lines, "; "))
	}
}

// mostRequests lists the cases in which redquake has the most requests/s, by the medians, and those
// in which another tool has.
func mostRequests(results []result, open map[string]bool) (most, less []string) {
	best := map[string]result{}
	for _, r := range results {
		if !slices.Contains([]string{nameLedger, nameOff, nameUnbounded}, r.Tool) &&
			r.RequestsPerSecond > best[r.Case].RequestsPerSecond {
			best[r.Case] = r
		}
	}
	for _, r := range results {
		switch b := best[r.Case]; {
		case r.Tool != nameRedquake || open[r.Case]:
		case b.Tool == nameRedquake:
			most = append(most, r.Case)
		default:
			less = append(less, fmt.Sprintf("%s (%.0f, %s %.0f)", r.Case, r.RequestsPerSecond, b.Tool,
				b.RequestsPerSecond))
		}
	}
	return most, less
}

// boundsVerdict tells whether the interval shows that bounds cost no more than they may.
func boundsVerdict(r *ratio) string {
	switch {
	case r.High == 0:
		return "too few rounds to tell"
	case r.High <= aimBounds:
		return "shown"
	case r.Low > aimBounds:
		return "exceeded"
	}
	return "not decided by these rounds"
}
