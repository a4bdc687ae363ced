package experiment

import (
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/analysis/compare"
	"github.com/redquake/redquake/internal/result"
)

// waited are six runs at a rate whose p99 is between least and value, as the load generator waited for a share of the
// time.
func waited(name string, slot int, value, least time.Duration, share float64) Cell {
	return cellOf(name, slot, func(n int, l *result.Load) {
		noise := result.Seconds(time.Duration(n) * time.Microsecond)
		l.Latency, l.Total.Latency = result.ResponseTime, &result.Quantiles{P99: result.Seconds(value) + noise}
		l.Total.Stalled = &result.Stalled{
			Latency:    &result.Quantiles{P99: result.Seconds(least) + noise},
			Throughput: l.Total.Throughput,
			Waited:     &result.Waited{Share: share},
		}
	})
}

// starvedFrom is a cell whose runs from the n-th on were as slow as the others at least, beside busy programs.
func starvedFrom(n int, c Cell) Cell {
	for i := range c.Runs[n:] {
		v := c.Runs[n+i].Values[compare.LatencyP99.Name]
		c.Runs[n+i].Values[compare.LatencyP99.Name] = Value{Value: 1.05 * v.Value, Least: 0.2 * v.Value, Late: 0.5}
	}
	return c
}

// What load generators made late themselves is no difference of Redis, and no sameness either. Figures as `make
// starvation` measured them: the same Redis at 2,000/s, the load generator alone, beside one busy program and beside
// three.
func TestLatenciesOfGeneratorsThatWaited(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	alone := waited("a", 0, ms/3, ms/8, 0.015)
	beside1 := waited("b", 1, 3*ms, ms/10, 0.10)
	beside3 := waited("b", 1, 6*ms, ms/13, 0.5)
	for name, c := range map[string]struct {
		a, b     Cell
		verdict  string
		notWorse *bool
	}{
		"alone against one program": {alone, beside1, "Inconclusive", nil},
		"alone against three":       {alone, beside3, "Inconclusive", nil},
		"both alone":                {alone, waited("b", 1, ms/3, ms/8, 0.016), "Same", new(true)},
		"waits of other lengths": {
			waited("a", 0, 3*ms, ms/10, 0.10), waited("b", 1, 50*ms, ms/10, 0.10),
			"Inconclusive", nil,
		},
		"the median beside a program": {
			waited("a", 0, ms, ms, 0), waited("b", 1, 3*ms/2, ms, 0.004), "Inconclusive",
			nil,
		},
		"both beside three":             {waited("a", 0, 6*ms, ms/13, 0.502), beside3, "Same", new(true)},
		"a slow Redis, both alone":      {alone, waited("b", 1, 2*ms, 3*ms/2, 0.016), "Worse", new(false)},
		"a slow Redis beside a program": {alone, waited("b", 1, 5*ms, 2*ms, 0.10), "Worse", new(false)},
		"a fast Redis beside a program": {
			waited("a", 0, 9*ms, 4*ms, 0.01), waited("b", 1, 3*ms, ms/10, 0.10),
			"Better", new(true),
		},
		"two of six beside three programs": {
			waited("a", 0, ms, ms, 0), starvedFrom(4, waited("b", 1, ms, ms, 0)),
			"Inconclusive", new(true),
		},
		"no worse, whatever the other one was": {
			waited("a", 0, 20*ms, 10*ms, 0.10), waited("b", 1, 10*ms, 9*ms, 0.01),
			"Inconclusive", new(true),
		},
	} {
		got := row(t, Table([]Cell{c.a, c.b}, asked(compare.LatencyP99)), compare.LatencyP99)
		if got.Verdict != c.verdict || (got.NotWorse == nil) != (c.notWorse == nil) ||
			got.NotWorse != nil && *got.NotWorse != *c.notWorse {
			t.Errorf("%s: %s (%s), not worse %v: %s", name, got.Verdict, got.Reason, got.NotWorse, got.Message)
		}
		if got.Verdict == "Inconclusive" &&
			(got.Reason != string(compare.GeneratorWaited) || !strings.Contains(got.Message, "did not run for")) {
			t.Errorf("%s: %s: %s", name, got.Reason, got.Message)
		}
	}
}
