package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// row is what is known of a test beside one kind of load.
type row struct {
	Test           string         `json:"test"`
	Beside         string         `json:"beside"`
	Runs           int            `json:"runs"`
	Failures       int            `json:"failures"`
	FailedSubtests map[string]int `json:"failedSubtests,omitempty"`
	MedianSeconds  float64        `json:"medianSeconds"`
	LongestSeconds float64        `json:"longestSeconds"`
	seconds        []float64
}

// wholePackage stands for a test where a program failed and none of its tests did.
const wholePackage = "(outside of tests)"

// summarize makes rows of runs, by name and in the order of the loads.
func summarize(entries []entry) []*row {
	var rows []*row
	count := func(test, beside string, failed bool, seconds float64) *row {
		i := slices.IndexFunc(rows, func(r *row) bool { return r.Test == test && r.Beside == beside })
		if i < 0 {
			i, rows = len(rows), append(rows, &row{Test: test, Beside: beside})
		}
		r := rows[i]
		r.Runs++
		if failed {
			r.Failures++
		}
		r.seconds = append(r.seconds, seconds)
		return r
	}
	for _, e := range entries {
		count(e.Package+" "+wholePackage, e.Beside, e.Failed, e.Seconds)
		for _, t := range e.Tests {
			r := count(e.Package+" "+t.Test, e.Beside, t.Failed, t.Seconds)
			for _, name := range t.Subtests {
				if r.FailedSubtests == nil {
					r.FailedSubtests = map[string]int{}
				}
				r.FailedSubtests[name]++
			}
		}
	}
	rows = slices.DeleteFunc(rows, func(r *row) bool {
		return r.Failures == 0 &&
			strings.HasSuffix(r.Test, wholePackage)
	})
	slices.SortStableFunc(rows, func(a, b *row) int { return cmp.Compare(a.Test, b.Test) })
	for _, r := range rows {
		slices.Sort(r.seconds)
		middle := len(r.seconds) / 2
		r.MedianSeconds = r.seconds[middle]
		r.LongestSeconds = r.seconds[len(r.seconds)-1]
		if len(r.seconds)%2 == 0 {
			r.MedianSeconds = (r.seconds[middle-1] + r.seconds[middle]) / 2
		}
	}
	return rows
}

func anyFailed(rows []*row) bool {
	return slices.ContainsFunc(rows, func(r *row) bool { return r.Failures > 0 })
}

// writeRows replaces the file as a whole.
func writeRows(path string, rows []*row) error {
	if rows == nil {
		rows = []*row{}
	}
	text, err := json.MarshalIndent(rows, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".part", append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".part", path)
}

// slowest is how many tests the second table has.
const slowest = 15

// printRows prints the tests that failed, and the slowest ones.
func printRows(w io.Writer, rows []*row) {
	failed := slices.DeleteFunc(slices.Clone(rows), func(r *row) bool { return r.Failures == 0 })
	slices.SortStableFunc(failed, func(a, b *row) int { return cmp.Compare(b.Failures, a.Failures) })
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(failed) > 0 {
		fmt.Fprintln(table, "\nFAILED\tBESIDE\tFAILURES\tRUNS\tMEDIAN\tLONGEST")
	}
	for _, r := range failed {
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%.1f s\t%.1f s\n", r.Test, r.Beside, r.Failures, r.Runs,
			r.MedianSeconds, r.LongestSeconds)
		for _, name := range sortedKeys(r.FailedSubtests) {
			fmt.Fprintf(table, "  %s\t\t%d\t\t\t\n", name, r.FailedSubtests[name])
		}
	}
	_ = table.Flush()
	slow := slices.DeleteFunc(slices.Clone(rows), func(r *row) bool {
		return strings.HasSuffix(r.Test,
			wholePackage)
	})
	slices.SortStableFunc(slow, func(a, b *row) int {
		return cmp.Compare(b.LongestSeconds,
			a.LongestSeconds)
	})
	fmt.Fprintln(table, "\nSLOWEST\tBESIDE\tFAILURES\tRUNS\tMEDIAN\tLONGEST")
	for _, r := range slow[:min(slowest, len(slow))] {
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%.1f s\t%.1f s\n", r.Test, r.Beside, r.Failures, r.Runs,
			r.MedianSeconds, r.LongestSeconds)
	}
	_ = table.Flush()
	runs, failures := 0, 0
	for _, r := range slow {
		runs += r.Runs
	}
	for _, r := range failed {
		failures += r.Failures
	}
	fmt.Fprintf(w, "\nstress: %d runs of tests, %d failures\n", runs, failures)
}

func sortedKeys(m map[string]int) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
