//go:build integration

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/redquake/redquake/internal/testing/redistest"
)

const (
	searchOut     = "REDQUAKE_SEARCH_OUT"     // names the file of the table
	searchRepeats = "REDQUAKE_SEARCH_REPEATS" // default 3
)

// found is the result of one search of the same capacity.
type found struct {
	Rate       float64   `json:"rate"`
	Throughput float64   `json:"throughput"`
	Seconds    float64   `json:"seconds"`
	Trials     []float64 `json:"trials"`
}

// TestMeasureSearch searches a known rate with a real Redis: four requests in flight, each of 100 ms, are 40/s. The
// precision on this machine is printed, not judged: TestSearchFindsTheCapacity is exact, in virtual time. Only an error
// that a slow machine cannot cause fails. A search takes a minute.
func TestMeasureSearch(t *testing.T) {
	file := os.Getenv(searchOut)
	if file == "" {
		t.Skip("only where REDQUAKE_SEARCH_OUT names the file of the table: make bench-search")
	}
	repeats := 3
	if n, err := strconv.Atoi(os.Getenv(searchRepeats)); err == nil && n > 0 {
		repeats = n
	}
	address := redistest.Start(t).Address()
	var all []found
	for range repeats {
		all = append(all, searchOnce(t, address))
	}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "found\tof 40/s\tthroughput\ttook\ttrials")
	for _, f := range all {
		fmt.Fprintf(w, "%.0f/s\t%.0f%%\t%.1f/s\t%.0f s\t%v\n", f.Rate, 100*f.Rate/40, f.Throughput, f.Seconds, f.Trials)
	}
	_ = w.Flush()
	slices.SortFunc(all, func(a, b found) int { return int(a.Rate - b.Rate) })
	t.Logf("\n%smedian %.0f/s, %.0f to %.0f/s", text.String(), all[len(all)/2].Rate, all[0].Rate, all[len(all)-1].Rate)
	b, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(b, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

func searchOnce(t *testing.T, address string) found {
	t.Helper()
	code, out, stderr := runCommand(t, nil, "load", "--address", address, "--search", "20:1000", "--users", "4",
		"--added-latency", "100ms", "--max-error-rate", "5%",
		"--search-trial", "2s", "--search-precision", "20%", "-o", "json")
	r := judged(t, code, out, stderr)
	if s := r.Search; s == nil || !s.Done || s.Rate > 40 || s.Rate <= 0 {
		t.Fatalf("the search is %+v, want at most 40/s\n%s", s, stderr)
	}
	f := found{Rate: r.Search.Rate, Throughput: r.Total.Throughput, Seconds: float64(r.Elapsed) / 1e9}
	for _, trial := range r.Search.Trials {
		f.Trials = append(f.Trials, trial.Rate)
		if trial.Met != (trial.Missed == "") || trial.Met != (trial.Rate <= f.Rate) {
			t.Errorf("%v/s were found, trial %+v", f.Rate, trial)
		}
	}
	return f
}
