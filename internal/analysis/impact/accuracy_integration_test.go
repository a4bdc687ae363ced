//go:build integration

package impact_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/engine"
)

const (
	accuracyOut     = "REDQUAKE_ACCURACY_OUT"     // names the file of the table
	accuracyRepeats = "REDQUAKE_ACCURACY_REPEATS" // of every case; default 3

	// accuracyAbsurd is an error that a slow machine cannot cause. The test does not judge errors of milliseconds.
	accuracyAbsurd = 5 * time.Second
)

// outcome is one line of the table, and of the file of REDQUAKE_ACCURACY_OUT. Truth, measured and error are those of the measurement with the median error.
type outcome struct {
	Case     string  `json:"case"`
	Truth    float64 `json:"truthSeconds"`
	Measured float64 `json:"measuredSeconds"`
	Error    float64 `json:"errorSeconds"` // measured - true length
	Least    float64 `json:"leastErrorSeconds"`
	Most     float64 `json:"mostErrorSeconds"`
	Repeats  int     `json:"repeats"`
	Stall    float64 `json:"stallSeconds"` // the longest by which the test's own timer was late around an end of an outage
}

// TestMeasureGroundTruth makes the outages of TestGroundTruth with real servers on this machine, and compares what the load measured with what the test itself
// timed: errors by case, beside those that the file contained before. They depend on this machine and its other load; the column stall shows
// how long it stalled around the begin or the end of an outage.
func TestMeasureGroundTruth(t *testing.T) {
	file := os.Getenv(accuracyOut)
	if file == "" {
		t.Skip("only where REDQUAKE_ACCURACY_OUT names the file of the table: make accuracy")
	}
	repeats := 3
	if text := os.Getenv(accuracyRepeats); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("%s is %q, want a number from 1 on", accuracyRepeats, text)
		}
		repeats = n
	}
	before := readOutcomes(t, file)
	var table []outcome
	for _, c := range outageCases {
		t.Run(c.name, func(t *testing.T) {
			var runs []measured
			for range repeats {
				runs = append(runs, measure(t, c))
			}
			o := summarize(c.name, runs)
			table = append(table, o)
			t.Logf("error %s, %s to %s", millis(o.Error), millis(o.Least), millis(o.Most))
			if median := seconds(o.Error); median.Abs() > accuracyAbsurd {
				t.Errorf("outage measured as %v, was %v", seconds(o.Measured), seconds(o.Truth))
			}
		})
	}
	t.Logf("\n%s", textOf(table, before))
	if t.Failed() {
		t.Fatal("the file is not written: cases failed")
	}
	b, err := json.MarshalIndent(table, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(b, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

// readOutcomes reads the file of an earlier run, if there is one.
func readOutcomes(t *testing.T, file string) map[string]outcome {
	t.Helper()
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var list []outcome
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		t.Logf("the last result is not compared: %v", err)
	}
	before := map[string]outcome{}
	for _, o := range list {
		before[o.Case] = o
	}
	return before
}

func summarize(name string, runs []measured) outcome {
	slices.SortFunc(runs, func(a, b measured) int { return cmp.Compare(a.off(), b.off()) })
	m := runs[len(runs)/2]
	o := outcome{
		Case: name, Truth: m.known.Seconds(), Measured: m.impact.Outage.Value.Seconds(), Error: m.off().Seconds(),
		Least: runs[0].off().Seconds(), Most: runs[len(runs)-1].off().Seconds(), Repeats: len(runs),
	}
	for _, r := range runs {
		o.Stall = max(o.Stall, r.stall.Seconds())
	}
	return o
}

// textOf formats the table, with errors in milliseconds.
func textOf(table []outcome, before map[string]outcome) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "case\ttruth s\tmedian error\tleast\tmost\tspread\tstall\tmedian before\tchange\t")
	for _, o := range table {
		former, change := "-", "-"
		if b, ok := before[o.Case]; ok {
			former, change = millis(b.Error), millis(o.Error-b.Error)
		}
		fmt.Fprintf(w, "%s\t%.4f\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", o.Case, o.Truth, millis(o.Error), millis(o.Least), millis(o.Most), millis(o.Most-o.Least),
			millis(o.Stall), former, change)
	}
	_ = w.Flush()
	return text.String()
}

func millis(s float64) string { return fmt.Sprintf("%.2f ms", 1000*s) }

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// measured is the result of one measurement.
type measured struct {
	known  time.Duration
	impact impact.Impact
	stall  time.Duration // how late the test's own timer was around the outage's ends
}

func (m measured) off() time.Duration { return m.impact.Outage.Value - m.known }

// measure makes the outage of a case once.
func measure(t *testing.T, c outageCase) measured {
	t.Helper()
	b := newBreakable(t, c.way)
	plan := c.plan(b.address())
	runner, err := engine.New(plan, 0)
	if err != nil {
		t.Fatal(err)
	}
	watch := watchStalls()
	i, called, broken, restored := c.run(t, runner, plan, b.cut, b.restore)
	stalls := watch.stop()
	m := measured{known: restored.Sub(broken), impact: i, stall: broken.Sub(called)}
	for _, edge := range []time.Time{called, restored} {
		m.stall = max(m.stall, stalls.around(edge))
	}
	return m
}

// stallWatch is a timer that records its delays.
type stallWatch struct {
	quit chan struct{}
	done chan []stall
}

type stall struct {
	at   time.Time
	late time.Duration
}

type stalls []stall

func watchStalls() *stallWatch {
	w := &stallWatch{quit: make(chan struct{}), done: make(chan []stall, 1)}
	go func() {
		const nap = 500 * time.Microsecond
		var list []stall
		for {
			select {
			case <-w.quit:
				w.done <- list
				return
			default:
			}
			began := time.Now()
			time.Sleep(nap)
			if late := time.Since(began) - nap; late > 2*time.Millisecond {
				list = append(list, stall{time.Now(), late})
			}
		}
	}()
	return w
}

func (w *stallWatch) stop() stalls {
	close(w.quit)
	return <-w.done
}

// around returns the longest stall that overlaps the time from 5 ms before to 10 ms after an instant.
func (l stalls) around(edge time.Time) time.Duration {
	var longest time.Duration
	for _, s := range l {
		if s.at.After(edge.Add(-5*time.Millisecond)) && s.at.Add(-s.late).Before(edge.Add(10*time.Millisecond)) {
			longest = max(longest, s.late)
		}
	}
	return longest
}
