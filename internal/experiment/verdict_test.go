package experiment

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/result/comparisons"
)

// recordOf has two cells with six runs each; edit changes the n-th run of both.
func recordOf(edit func(n int, r *RecordedRun)) *Record {
	record := &Record{Version: RecordVersion, Cells: []string{"a=1", "a=2"}}
	for n := range 6 {
		for cell := range 2 {
			r := RecordedRun{
				Cell:     cell,
				Round:    n + 1,
				LoadTest: fmt.Sprintf("e-%04d", 2*n+cell+1),
				Start:    start.Add(time.Duration(n) * time.Minute),
				Values:   map[string]Value{"throughput": {Value: 100}},
			}
			if edit != nil {
				edit(n, &r)
			}
			record.Runs = append(record.Runs, r)
		}
	}
	return record
}

func TestJudge(t *testing.T) {
	t.Parallel()
	yes, no := new(true), new(false)
	row := func(notWorse, same *bool) comparisons.Comparison {
		return comparisons.Comparison{Cell: "a=2", NotWorse: notWorse, Same: same, Message: "the message"}
	}
	regressed := []comparisons.Comparison{
		{Cell: "a=1", Verdict: string(v1alpha1.ComparisonRegressed), Message: "20 % slower"},
	}
	for _, test := range []struct {
		name    string
		record  *Record
		row     comparisons.Comparison
		require v1alpha1.ComparisonRequirement
		earlier []comparisons.Comparison
		gates   bool
		want    v1alpha1.Verdict
		message string
	}{
		{"nothing required", recordOf(nil), row(no, no), v1alpha1.RequireNone, nil, false, v1alpha1.VerdictPass, ""},
		{"not worse", recordOf(nil), row(yes, no), v1alpha1.RequireNotWorse, nil, false, v1alpha1.VerdictPass, ""},
		{"worse", recordOf(nil), row(no, no), v1alpha1.RequireNotWorse, nil, false, v1alpha1.VerdictFail, "a=2: the message"},
		{
			"perhaps worse", recordOf(nil), row(nil, nil), v1alpha1.RequireNotWorse, nil, false, v1alpha1.VerdictInconclusive,
			"a=2: the message",
		},
		{
			"not the same", recordOf(nil), row(yes, no), v1alpha1.RequireSame, nil, false, v1alpha1.VerdictFail,
			"a=2: the message",
		},
		{"regressed, shown", recordOf(nil), row(yes, yes), v1alpha1.RequireNone, regressed, false, v1alpha1.VerdictPass, ""},
		{
			"regressed, an objective", recordOf(nil), row(yes, yes), v1alpha1.RequireNone, regressed, true, v1alpha1.VerdictFail,
			"a=1 has regressed: 20 % slower",
		},
		{"an objective of a run", recordOf(func(n int, r *RecordedRun) {
			if n == 2 && r.Cell == 1 {
				r.Failed, r.Missed = "p99", true
			}
		}), row(yes, yes), v1alpha1.RequireNone, nil, false, v1alpha1.VerdictFail, "1 of 6 runs of a=2: p99"},
		{"a third inconclusive", recordOf(func(n int, r *RecordedRun) {
			if n < 2 {
				r.Failed, r.Inconclusive = "lost", "lost"
			}
		}), row(yes, yes), v1alpha1.RequireNone, nil, false, v1alpha1.VerdictPass, ""},
		{
			"more than a third",
			recordOf(func(n int, r *RecordedRun) {
				if n < 3 && r.Cell == 0 {
					r.Inconclusive = "lost"
				}
			}),
			row(yes, yes),
			v1alpha1.RequireNone,
			nil,
			false,
			v1alpha1.VerdictInconclusive,
			"3 of 6 runs of a=1 are inconclusive",
		},
		{
			"no run of a cell",
			&Record{Cells: []string{"a=1"}},
			row(yes, yes),
			v1alpha1.RequireNone,
			nil,
			false,
			v1alpha1.VerdictInconclusive,
			"0 of 0 runs of a=1 are inconclusive",
		},
	} {
		if j := Judge(test.record, []comparisons.Comparison{test.row}, test.require, test.earlier,
			test.gates); j.Verdict != test.want || j.Message != test.message {
			t.Errorf("%s: %+v, want %s: %s", test.name, j, test.want, test.message)
		}
	}
	many := recordOf(nil)
	var rows []comparisons.Comparison
	for range 8 {
		rows = append(rows, row(no, no))
	}
	if j := Judge(many, rows, v1alpha1.RequireSame, nil, false); !strings.HasSuffix(j.Message, "; and 3 more") {
		t.Errorf("%q", j.Message)
	}
}

func TestRecord(t *testing.T) {
	t.Parallel()
	want := recordOf(func(n int, r *RecordedRun) {
		if n == 0 {
			r.Values["recoveryTime"] = Value{Value: 120, Censored: true}
		}
	})
	data, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeRecord(data)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	cells := got.CellsOf(func(int) string { return "a=1" })
	if len(cells) != 2 || len(cells[1].Runs) != 6 || cells[1].Runs[5].Round != 6 || cells[1].Baseline != "a=1" ||
		!cells[1].Runs[0].Values["recoveryTime"].Censored {
		t.Errorf("%+v", cells)
	}
	if counts := got.Counts(func(int) string { return "a=1" }); counts[0].Baseline != "" || counts[1].Baseline != "a=1" ||
		counts[1].Finished != 6 {
		t.Errorf("%+v", counts)
	}
}

// The largest experiment fits into a ConfigMap.
func TestLargestRecordFits(t *testing.T) {
	t.Parallel()
	record := &Record{Version: RecordVersion}
	for i := range MaxCells {
		record.Cells = append(record.Cells, strings.Repeat(fmt.Sprintf("parameter-%d=value,", i), 12))
	}
	for n := range MaxRuns {
		r := RecordedRun{
			Cell:         n % MaxCells,
			Round:        n,
			LoadTest:     fmt.Sprintf("experiment-%04d", n),
			Start:        start,
			End:          start,
			Failed:       strings.Repeat(fmt.Sprint(n), 100),
			Inconclusive: strings.Repeat(fmt.Sprint(n), 100),
			Values:       map[string]Value{},
		}
		for _, f := range []string{
			"throughput", "latencyP50", "latencyP99", "latencyP999", "errorRate", "outage",
			"probeOutage", "recoveryTime", "lostWrites", "lostRequests", "maxCPU", "maxMemory",
		} {
			r.Values[f] = Value{Value: float64(n*7919+len(f)) / 7.123456789}
		}
		record.Runs = append(record.Runs, r)
	}
	data, err := record.Encode()
	if err != nil || len(data) > 900_000 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	t.Logf("%d runs are %d bytes", MaxRuns, len(data))
	if _, err := DecodeRecord(data); err != nil {
		t.Error(err)
	}
}

func TestBrokenRecords(t *testing.T) {
	t.Parallel()
	packed := func(text string) []byte {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		_, _ = w.Write([]byte(text))
		_ = w.Close()
		return out.Bytes()
	}
	for _, test := range []struct {
		data []byte
		want string
	}{
		{nil, "read the experiment's record: EOF"},
		{[]byte("this is no gzip file"), "gzip: invalid header"},
		{packed("{"), "unexpected end of JSON"},
		{packed(`{"version": 2}`), "version 2, later than 1"},
		{packed(`{"version": 1, "cells": ["a"], "runs": [{"cell": 1}]}`), "run 1 is of cell 1 of 1"},
		{packed(`{"version": 1, "cells": ["` + strings.Repeat(" ", maxRecord) + `"]}`), "longer than"},
	} {
		if _, err := DecodeRecord(test.data); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, want %s", err, test.want)
		}
	}
}
