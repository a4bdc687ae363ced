//go:build e2e

package e2e_test

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// limits is what a figure may be, both ends included.
type limits struct {
	Min string `json:"min"`
	Max string `json:"max"`
}

// rangesOf are the figures of a scenario in ranges.yaml.
func rangesOf(t *testing.T, scenario string) map[string]limits {
	t.Helper()
	text, err := os.ReadFile("ranges.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var ranges map[string]map[string]limits
	if err := yaml.UnmarshalStrict(text, &ranges); err != nil {
		t.Fatalf("ranges.yaml: %v", err)
	}
	return ranges[scenario]
}

// inRange checks a figure of a status against ranges.yaml.
func inRange(t *testing.T, scenario, figure, actual string) {
	t.Helper()
	wanted, ok := rangesOf(t, scenario)[figure]
	if !ok {
		t.Fatalf("ranges.yaml knows no %s of %s", figure, scenario)
	}
	is, low, high := number(t, figure, actual), number(t, figure, wanted.Min), number(t, figure, wanted.Max)
	if is < low || is > high {
		t.Errorf("%s of %s is %s, want %s to %s", figure, scenario, actual, wanted.Min, wanted.Max)
	}
	t.Logf("%s: %s %s (from %s to %s)", scenario, figure, actual, wanted.Min, wanted.Max)
}

// number reads a share (99.2%), a duration (4.12s) in seconds, or a plain number.
func number(t *testing.T, figure, text string) float64 {
	t.Helper()
	if share, ok := strings.CutSuffix(text, "%"); ok {
		text = share
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		return n
	}
	return duration(t, figure, text).Seconds()
}

// duration reads a duration as a status writes it.
func duration(t *testing.T, figure, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("%s is %q: not a duration", figure, text)
	}
	return d
}
