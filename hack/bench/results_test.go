package main

import (
	"strings"
	"testing"
)

func TestMedian(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		want   float64
	}{{[]float64{3}, 3}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 3, 2}, 2.5}} {
		if got := median(tt.values); got != tt.want {
			t.Errorf("median of %v is %v, want %v", tt.values, got, tt.want)
		}
	}
}

// TestCompare: the ratios are those of the same round, and a tool or figure that was not measured is in none.
func TestCompare(t *testing.T) {
	var one, other []run
	for round := range 7 {
		speed := float64(1 + round) // of the machine in this round
		one = append(one, run{
			cpuMicros: 2 * speed,
			figures: figures{
				perSecond: 300 / speed,
				p50:       900 * speed,
				p99:       950 * speed,
				sent50:    50 * speed,
				sent99:    60 * speed,
			},
		})
		other = append(other, run{
			cpuMicros: 4 * speed,
			figures:   figures{perSecond: 200 / speed, p50: 100 * speed, p99: 200 * speed},
		})
	}
	runs := map[string][]run{nameRedquake: one, nameMemtier: other, nameOff: {}}
	got := ratioTable(compare(&work{name: "SET", pipeline: 1}, runs))
	const title = "| case | tools | CPU | requests/s | p50 | p99 |\n| --- | --- | ---: | ---: | ---: | ---: |\n"
	const want = title +
		"| SET | redquake / memtier_benchmark | 0.50 (0.50 to 0.50) | 1.50 (1.50 to 1.50) | 0.50 (0.50 to 0.50) | 0.30 (0.30 to 0.30) |\n"
	if got != want {
		t.Errorf("closed loop:\n%swant\n%s", got, want)
	}
	got = ratioTable(compare(&work{name: "open", pipeline: 1, rate: 1}, map[string][]run{
		nameRedquake: one[:2],
		nameMemtier:  other[:2],
	}))
	if want := title + "| open | redquake / memtier_benchmark | 0.50 | - | 0.50 | 0.30 |\n"; got != want {
		t.Errorf("open loop of two rounds:\n%swant\n%s", got, want)
	}
	got = ratioTable(compare(&work{name: "piped", pipeline: 16}, map[string][]run{nameRedquake: one, nameMemtier: other}))
	if want := title +
		"| piped | redquake / memtier_benchmark | 0.50 (0.50 to 0.50) | 1.50 (1.50 to 1.50) | - | - |\n"; got != want {
		t.Errorf("pipeline:\n%swant\n%s", got, want)
	}
}

func TestBenchTables(t *testing.T) {
	w := work{name: "SET, open loop", pipeline: 1, requests: 1000, connections: 50, rate: 2500}
	got := benchTables([]result{
		summarize(&w, nameRedquake, []run{
			{cpuMicros: 3, threads: 7, figures: figures{perSecond: 2400, p50: 80, p99: 90, sent50: 70, sent99: 75}},
			{cpuMicros: 1, threads: 8, figures: figures{perSecond: 2500, p50: 80, p99: 90, sent50: 70, sent99: 75}},
		}),
		summarize(&work{name: "other"}, nameOff, []run{{cpuMicros: 1, figures: figures{perSecond: 5}}}),
	})
	for _, want := range []string{
		"**SET, open loop**: 2 rounds of 1000 requests over 50 connections at 2500/s each\n",
		"| redquake | 2.00 | 1.00 to 3.00 | 2450 | 80 (70) | 90 (75) | 8 |\n", "**other**", "| 5 | - | - | 0 |",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
}

func TestDescribeOthers(t *testing.T) {
	m := machine{Placement: "here", Others: []float64{0.01, 0.03, 0.02}, ThrownAway: 4}
	if got, want := m.describeOthers(), "others used 2.0 % of a core (median; at most 3.0 %); 4 rounds"; !strings.Contains(
		got, want) {
		t.Errorf("%q is missing in %q", want, got)
	}
	m.AllowBusy = true
	if got, want := m.describeOthers(), "busy machine"; !strings.Contains(got, want) {
		t.Errorf("%q is missing in %q", want, got)
	}
}
