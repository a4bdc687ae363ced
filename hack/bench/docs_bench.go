package main

import (
	"fmt"
	"slices"
	"strings"
)

func benchSection() (string, error) {
	var results []result
	var ratios []ratio
	var m machine
	ok, err := readJSON(benchFile, &results)
	if !ok || err != nil {
		return "", err
	}
	if _, err := readJSON(benchRatiosFile, &ratios); err != nil {
		return "", err
	}
	if _, err := readJSON(benchMachineFile, &m); err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(m.describe() + m.describeOthers())
	for _, version := range m.Tools {
		fmt.Fprintf(&b, "- %s\n", version)
	}
	for _, reason := range m.LeftOut {
		fmt.Fprintf(&b, "- Left out: %s\n", reason)
	}
	b.WriteString(
		"\nThe first divided by the second in the same round, with the 95 % confidence interval:\n\n" +
			ratioTable(ratios))
	limits, err := readLimits()
	if err != nil {
		return "", err
	}
	table, _, _ := limitTable(limits, results, ratios)
	b.WriteString("\nThe limits:\n\n" + table + benchTables(results))
	return b.String(), nil
}

// describeOthers tells how quiet the machine was.
func (m *machine) describeOthers() string {
	if len(m.Others) == 0 {
		return ""
	}
	used := fmt.Sprintf("others used %.1f %% of a core (median; at most %.1f %%)",
		100*median(m.Others), 100*slices.Max(m.Others))
	if m.AllowBusy {
		return fmt.Sprintf(
			"Pinned: %s. **Measured on a busy machine** (`--allow-busy`): %s. The figures are no reference.\n\n",
			m.Placement, used)
	}
	return fmt.Sprintf(
		"Pinned: %s. During the rounds that count, %s; %d rounds of a case were thrown away and repeated because of more than %.0f %%.\n\n",
		m.Placement, used, m.ThrownAway, 100*busyLimit)
}

// benchTables has a table of tools for each case.
func benchTables(results []result) string {
	var b strings.Builder
	for _, of := range groups(results, func(r result) string { return r.Case }) {
		fmt.Fprintf(&b, "\n**%s**: %d rounds of %s each\n\n%s", of[0].Case, of[0].Rounds, of[0].Work,
			benchTable(of))
	}
	return b.String()
}

func benchTable(results []result) string {
	var b strings.Builder
	b.WriteString(
		"| tool | CPU us/request | least to most | requests/s | p50 us | p99 us | threads |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for _, r := range results {
		fmt.Fprintf(&b, "| %s | %.2f | %.2f to %.2f | %.0f | %s | %s | %d |\n", r.Tool, r.CPUMicros,
			r.CPUMicrosMin, r.CPUMicrosMax,
			r.RequestsPerSecond, latency(r.P50Micros, r.SentP50Micros),
			latency(r.P99Micros, r.SentP99Micros), r.Threads)
	}
	return b.String()
}

// latency is "-" if the tool does not report it.
func latency(micros, sent float64) string {
	switch {
	case micros == 0:
		return "-"
	case sent != 0:
		return fmt.Sprintf("%.0f (%.0f)", micros, sent)
	}
	return fmt.Sprintf("%.0f", micros)
}

// ratioTable has a line for each case and pair of tools.
func ratioTable(ratios []ratio) string {
	var b strings.Builder
	b.WriteString(
		"| case | tools | CPU | requests/s | p50 | p99 |\n| --- | --- | ---: | ---: | ---: | ---: |\n")
	for _, of := range groups(ratios, func(r ratio) [3]string {
		return [3]string{
			r.Case, r.One,
			r.Other,
		}
	}) {
		fmt.Fprintf(&b, "| %s | %s / %s |", of[0].Case, of[0].One, of[0].Other)
		for _, figure := range []string{figureCPU, figurePerSecond, figureP50, figureP99} {
			text := "-"
			if i := slices.IndexFunc(of, func(r ratio) bool { return r.Figure == figure }); i >= 0 {
				text = of[i].String()
			}
			fmt.Fprintf(&b, " %s |", text)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// String is "0.54 (0.52 to 0.57)", without the interval if there were too few rounds.
func (r *ratio) String() string {
	if r.High == 0 {
		return fmt.Sprintf("%.2f", r.Ratio)
	}
	return fmt.Sprintf("%.2f (%.2f to %.2f)", r.Ratio, r.Low, r.High)
}
