package run

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/course"
	"github.com/redquake/redquake/internal/report/subject"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/testing/golden"
)

// courseOf is the course of a run of the golden files, with its faults.
func courseOf(t *testing.T, in subject.Input, operation string) *result.Course {
	t.Helper()
	var marks []result.Mark
	for i := range in.Faults {
		f := &in.Faults[i]
		at := f.Status.InjectedAt.Sub(in.Series.Start)
		marks = append(marks, result.Mark{
			Name:  f.Name,
			Type:  string(f.Spec.Action.Type),
			At:    result.Seconds(at),
			Until: new(result.Seconds(at + f.Status.Impact.RecoveryTime.Value.Duration)),
		})
	}
	c, err := result.NewCourse(in.Series, 10*time.Second, operation, marks)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func partsOf(t *testing.T, in subject.Input, c *result.Course) string {
	t.Helper()
	var b strings.Builder
	if err := report.WriteParts(&b, Course(in, c)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestCourse(t *testing.T) {
	in := saved(t, "several")
	golden.Compare(t, filepath.Join("testdata", "golden", "several-course.txt"), partsOf(t, in, courseOf(t, in, "")))
}

// The same gap has the same uncertainty as the outage of the load, as that of the fault, and among the times without a
// success.
func TestOneUncertaintyOfAGap(t *testing.T) {
	in := saved(t, "pass")
	one, err := Fault(in, "kill-primary")
	if err != nil {
		t.Fatal(err)
	}
	load, whole := LoadTest(in), in
	whole.Test = nil // by the record alone
	const want = "2\u00a0s ±\u00a08.1\u00a0ms"
	for name, d := range map[string]*report.Document{"fault": one, "load": load, "load by its record": LoadTest(whole)} {
		for _, f := range d.Figures {
			if f.Name == "outage" && f.Headline && f.String() != want {
				t.Errorf("%s: %q, want %q", name, f.String(), want)
			}
		}
	}
	if text := partsOf(t, in, courseOf(t, in, "")); strings.Count(text, " 2 s ± 8.1 ms") != 2 ||
		strings.Contains(text, "5.1 ms") {
		t.Errorf("the course has another one:\n%s", text)
	}
}

// The gaps of the selected operation replace those of the load.
func TestCourseOfAnOperation(t *testing.T) {
	in := saved(t, "several")
	c := courseOf(t, in, "set")
	c.OperationGaps = []result.OperationGaps{
		{
			Operation: "set",
			Gaps:      []result.Gap{{At: result.Seconds(15 * time.Second), Length: 9e8, AtLeast: 9e8, AtMost: 9e8}},
		},
	}
	text := partsOf(t, in, c)
	if !strings.HasPrefix(text, "Every 10 s, of set\n") ||
		!strings.Contains(text, "\nset             +15 s          900 ms\n") || strings.Contains(text, "\nthe load  ") {
		t.Errorf("the gaps are those of something else:\n%s", text)
	}
}

// Of many gaps the longest are listed, those that may be none are left out, and a row has the longest of its gaps, not
// their sum: a load of 500/s has one between any two successes.
func TestCourseListsTheLongestGaps(t *testing.T) {
	in := saved(t, "several")
	c := courseOf(t, in, "")
	ms := func(n float64) result.Seconds { return result.Seconds(n * float64(time.Millisecond)) }
	c.Gaps, c.WriteGaps, c.ReadGaps, c.ProbeGaps = nil, nil, nil, nil
	for i := range 900 {
		c.Gaps = append(c.Gaps, result.Gap{
			At:      ms(float64(i) * 10),
			Length:  ms(6 + float64(i)/100),
			AtLeast: ms(5),
			AtMost:  ms(16),
		})
	}
	c.Gaps = append(c.Gaps, result.Gap{At: ms(9_200), Length: ms(300), AtMost: ms(600)}, // perhaps none
		result.Gap{At: ms(9_990), Length: ms(1150), AtLeast: ms(1100), AtMost: ms(1160), Open: true},
		result.Gap{At: ms(12_000), Length: ms(818), AtLeast: ms(800), AtMost: ms(820)})
	text := partsOf(t, in, c)
	_, below, _ := strings.Cut(text, "\nTimes without a success\n")
	lines := strings.Split(strings.TrimSpace(below), "\n")
	if len(lines) != 1+course.Listed+1 || !strings.Contains(lines[1], "+9.99 s   1.15 s ± 50 ms  the end of the run") ||
		!strings.Contains(lines[2], "818 ms ± 18 ms") ||
		!strings.Contains(lines[3], "5 ms–16 ms") || !strings.Contains(lines[11], "at most 14.9 ms  892 more") {
		t.Errorf("the gaps are\n%s", below)
	}
	rows := strings.Split(text, "\n")
	for i, want := range []string{" 15 ms", " 1.14 s"} {
		if !strings.Contains(rows[i+2], want) {
			t.Errorf("row %d is %q, want %q", i, rows[i+2], want)
		}
	}
}

// What was read back after a load, as text.
func TestLedgerAsText(t *testing.T) {
	for name, c := range map[string]struct {
		ledger *record.Ledger
		want   []string
	}{
		"nothing lost": {
			&record.Ledger{Acked: 1484, Unknown: 2, UnknownPresent: 1, Replicas: 2, Settings: "appendonly yes"},
			[]string{"None of 1,484 was lost", "Unknown        2 (1 of them were found)", "\nappendonly yes\n"},
		},
		"lost quietly": {
			&record.Ledger{
				Acked:          524320,
				Lost:           276128,
				FirstLost:      int64(707400 * time.Microsecond),
				LastLost:       int64(1677500 * time.Microsecond),
				Replicas:       2,
				ReplicaMissing: 3,
			},
			[]string{
				"276,128 of 524,320", "acknowledged  707 ms to 1.68 s after the start (no client saw an error then)",
				"2 (3 missing at the worst)",
			},
		},
		"lost with errors": {
			&record.Ledger{Acked: 10, Lost: 1, LastLost: int64(time.Second), Errors: 7},
			[]string{"about 7 requests failed then"},
		},
		"evicted": {
			&record.Ledger{
				Acked:     1000,
				Lost:      100,
				Unique:    true,
				Evictions: map[string]record.Evictions{"a": {Keys: 30, Final: true}},
			},
			[]string{"70–100", "70 to 100 of 1,000 were lost: Redis may have evicted the others that are absent.\n"},
		},
		"executed twice": {
			&record.Ledger{
				Acked:          600,
				Failed:         4,
				Unknown:        9,
				UnknownPresent: 5,
				FailedPresent:  1,
				ExecutedTwice:  new(uint64(50)),
			},
			[]string{
				"Failed but executed  6 (the application saw an error, and the write is there)",
				"Executed twice       50 (or more often: the library sent them again)",
			},
		},
		"unread": {
			&record.Ledger{Acked: 10, Lost: 10, Unread: "no primary"},
			[]string{"How many were lost is not known: no primary.", "Lost writes     not measured"},
		},
		"beside it": {
			&record.Ledger{
				Acked: 1,
				Stale: &record.Staleness{
					Reads:        100,
					Stale:        3,
					MaxWrites:    2,
					MaxBehind:    int64(4 * time.Millisecond),
					NonMonotonic: 1,
					RolledBack:   1,
				},
				Dual: &record.DualPrimary{Writes: 5, First: 1e9, Last: 2e9},
			},
			[]string{
				"3 (of 100, at most 2 writes and 4 ms behind; 2 went backwards)",
				"Writes at a second primary  5 (1 s to 2 s after the start)",
			},
		},
	} {
		load := &result.Load{
			Outcome: result.Finished,
			Verdict: "Pass",
			Total:   result.Operation{Name: "all", Requests: 10, OK: 10},
		}
		load.Verified(c.ledger)
		text := written(t, "txt", LoadTest(subject.Input{Name: "x", Load: load}))
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is not in\n%s", name, want, text)
			}
		}
	}
}

// What was found of locks, as text.
func TestLocksAsText(t *testing.T) {
	for name, c := range map[string]struct {
		found *record.Guarantees
		want  []string
	}{
		"none": {
			&record.Guarantees{Lock: &record.Lock{Taken: 1234}},
			[]string{"Never did two users hold the same lock: 1,234 times was one taken."},
		},
		"part": {
			&record.Guarantees{Lock: &record.Lock{Taken: 1234}, Untold: "1 of 2 load pods was lost"},
			[]string{"Whether two users ever held the same lock is not known.", "lower bounds"},
		},
		"never": {&record.Guarantees{Lock: &record.Lock{}}, []string{"No user could take a lock."}},
		"some": {
			&record.Guarantees{Lock: &record.Lock{
				Taken: 100, Overlaps: 3, Overlap: int64(7 * time.Millisecond), FirstOverlap: 1e9, LastOverlap: 2e9, Lost: 4,
				Expired: 5, Unreplicated: 6, Unheld: 8e9, FencesBack: new(uint64(9)),
			}, Untold: "1 of 2 load pods was lost"},
			[]string{
				"3 times did two users hold the same lock, for up to 7 ms", "Held by two users                   3 (1 s to 2 s after the start)",
				"Lost                                4 (gone", "Expired                             5 (their", "without a holder       8 s",
				"Given up at once                    6 (too few", "went backwards  9 (a resource", "lower bounds: 1 of 2 load pods was lost.",
			},
		},
	} {
		load := &result.Load{Outcome: result.Finished, Verdict: "Pass", Total: result.Operation{Name: "all", Requests: 10, OK: 10}}
		load.Guaranteed(c.found)
		text := written(t, "txt", LoadTest(subject.Input{Name: "x", Load: load}))
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is not in\n%s", name, want, text)
			}
		}
	}
}

// The short report is one screen: it has what people wait for, nothing that only explains the form, and no text that
// the report does not have.
func TestShort(t *testing.T) {
	in := saved(t, "pass")
	for _, d := range documents(t, in) {
		short, whole := written(t, "txt", Short(d)), written(t, "txt", d)
		if n := strings.Count(short, "\n"); n > 45 || n < 15 {
			t.Errorf("%s: %d lines:\n%s", d.Kind, n, short)
		}
		for line := range strings.Lines(short) {
			if !strings.Contains(whole, line) {
				t.Errorf("%s: %q is not in the report", d.Kind, line)
			}
		}
		if strings.Contains(short, "one fault is one sample") || strings.Contains(short, "apiVersion") {
			t.Errorf("%s explains itself:\n%s", d.Kind, short)
		}
	}
	text := written(t, "txt", Short(LoadTest(inconclusive(t))))
	if !strings.Contains(text, "34.15s") || !strings.Contains(text, "\nOperations\n") {
		t.Errorf("the doubts or the operations are missing:\n%s", text)
	}
	for _, line := range []string{
		"Not conclusive: the load generator was too slow (and 2 other reasons).",
		"3 reasons not to trust the figures, under Doubts.", "- LoadGeneratorSaturated: the load",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("%q is not in\n%s", line, text)
		}
	}
}
