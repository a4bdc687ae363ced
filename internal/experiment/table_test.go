package experiment

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/compare"
	"github.com/redquake/redquake/internal/analysis/durations"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/result/comparisons"
)

var start = time.Date(2026, 11, 24, 8, 0, 0, 0, time.UTC)

// finished is the result of a load that ran in turns with those of other cells.
func finished(slot, turn int, edit func(*result.Load)) *result.Load {
	l := &result.Load{
		Outcome:  result.Finished,
		Latency:  result.ServiceTime,
		Start:    start.Add(time.Duration(10*turn+slot) * time.Minute),
		Measured: result.Seconds(30 * time.Second),
		Total: result.Operation{
			Requests:   1000,
			Throughput: 1000 + float64(turn),
			Latency:    &result.Quantiles{P99: result.Seconds(time.Millisecond + time.Duration(turn)*time.Microsecond)},
		},
	}
	if edit != nil {
		edit(l)
	}
	return l
}

// cellOf has six runs; edit changes the n-th of them.
func cellOf(name string, slot int, edit func(n int, l *result.Load)) Cell {
	c := Cell{Name: name}
	for turn := range 6 {
		r := OfLoad(finished(slot, turn, func(l *result.Load) {
			if edit != nil {
				edit(turn, l)
			}
		}))
		r.Source = fmt.Sprintf("%s-%d.json", name, turn)
		c.Runs = append(c.Runs, r)
	}
	return c
}

// row is the comparison of a figure.
func row(t *testing.T, of *comparisons.Comparisons, figure compare.Figure) comparisons.Comparison {
	t.Helper()
	for _, c := range of.Comparisons {
		if c.Figure == figure.Name {
			return c
		}
	}
	t.Fatalf("there is no %s in %+v", figure.Name, of.Comparisons)
	return comparisons.Comparison{}
}

func asked(figures ...compare.Figure) Question { return Question{Primary: figures} }

// Runs without a success are the slowest, and not left out.
func TestNoSuccessIsNoSameLatency(t *testing.T) {
	t.Parallel()
	dead := cellOf("dead", 1, func(n int, l *result.Load) {
		if n >= 1 {
			l.Total.Latency, l.Total.Throughput = nil, 0
		}
	})
	got := row(t, Table([]Cell{cellOf("ok", 0, nil), dead}, asked(compare.LatencyP99)), compare.LatencyP99)
	if got.Repeats != 6 || got.Verdict != "Worse" && got.Verdict != "Inconclusive" ||
		got.NotWorse != nil && *got.NotWorse ||
		!got.MedianAtLeast {
		t.Errorf("%+v", got)
	}
}

// Runs whose load generator waited for a CPU are left out: what they lack is not Redis'. So are those that miss an
// objective all the same.
func TestStarvedRunsAreLeftOut(t *testing.T) {
	t.Parallel()
	starved := cellOf("starved", 1, func(_ int, l *result.Load) {
		l.Verdict, l.Total.Throughput = "Fail", l.Total.Throughput/4
		l.Total.Stalled = &result.Stalled{Throughput: 4 * l.Total.Throughput, Waited: &result.Waited{Share: 0.75}}
	})
	got := row(t, Table([]Cell{cellOf("ok", 0, nil), starved}, asked(compare.Throughput)), compare.Throughput)
	if got.Verdict != "Inconclusive" || got.Repeats != 0 ||
		!strings.HasPrefix(starved.Runs[0].Inconclusive, "GeneratorStarved: load pod 0 waited for a CPU") {
		t.Errorf("%+v, %q", got, starved.Runs[0].Inconclusive)
	}
}

// A load without a gap has an outage of 0.
func TestNoGapIsAnOutageOfZero(t *testing.T) {
	t.Parallel()
	gap := func(_ int, l *result.Load) { l.LongestGap = &result.Gap{Length: result.Seconds(2 * time.Second)} }
	got := row(t, Table([]Cell{cellOf("none", 0, nil), cellOf("gap", 1, gap)}, asked(compare.Outage)), compare.Outage)
	if got.Verdict != "Worse" || got.Repeats != 6 || got.BaselineRepeats != 6 ||
		!strings.Contains(got.Message, "2s instead of 0s of none") {
		t.Errorf("%+v", got)
	}
}

// A rate of errors within the absolute margin is the same as none.
func TestMarginOfErrorsAboveNone(t *testing.T) {
	t.Parallel()
	few := func(_ int, l *result.Load) { l.Total.ErrorRate = 0.0003 }
	got := row(t, Table([]Cell{cellOf("none", 0, nil), cellOf("few", 1, few)}, asked(compare.ErrorRate)),
		compare.ErrorRate)
	if got.Verdict != "Same" || !strings.Contains(got.Message, "within 0.1 percentage points") {
		t.Errorf("%+v", got)
	}
}

// Lost writes that too few runs can tell, or that were not counted, are no pass.
func TestLostWritesThatAreNotKnown(t *testing.T) {
	t.Parallel()
	lost := func(n uint64) func(int, *result.Load) {
		return func(_ int, l *result.Load) { l.Verification = &result.Verification{Lost: &n} }
	}
	few := func(c Cell) Cell { c.Runs = c.Runs[:3]; return c }
	for name, test := range map[string]struct {
		a, b   Cell
		reason string
		passes bool
	}{
		"too few":     {few(cellOf("a", 0, lost(0))), few(cellOf("b", 1, lost(100))), "TooFewRepeats", false},
		"not counted": {cellOf("a", 0, lost(0)), cellOf("b", 1, nil), "NotMeasured", false},
		"none":        {cellOf("a", 0, lost(0)), cellOf("b", 1, lost(0)), "NoneSeen", true},
	} {
		got := row(t, Table([]Cell{test.a, test.b}, asked(compare.LostWrites)), compare.LostWrites)
		if got.Reason != test.reason || (got.NotWorse != nil) != test.passes {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Cells that ran one after the other differ as two days do: what is within the margin is not claimed.
func TestCellsApart(t *testing.T) {
	t.Parallel()
	slower := func(_ int, l *result.Load) { l.Total.Throughput *= 0.955 }
	old, turns, later := cellOf("old", 0, nil), cellOf("turns", 1, slower), cellOf("later", 600, slower)
	if got := row(t, Table([]Cell{old, turns}, asked(compare.Throughput)), compare.Throughput); got.Verdict != "Same" &&
		got.Verdict != "Worse" {
		t.Errorf("in turns: %+v", got)
	}
	table := Table([]Cell{old, later}, asked(compare.Throughput))
	if got := row(t, table, compare.Throughput); got.Verdict == "Worse" || len(table.Notes) != 1 ||
		!strings.Contains(table.Notes[0], "run them in turns") {
		t.Errorf("one after the other: %+v, %v", got, table.Notes)
	}
	muchSlower := cellOf("later", 600, func(_ int, l *result.Load) { l.Total.Throughput *= 0.5 })
	if got := row(t, Table([]Cell{old, muchSlower}, asked(compare.Throughput)),
		compare.Throughput); got.Verdict != "Worse" {
		t.Errorf("half: %+v", got)
	}
}

// Of runs that are dropped, file and reason are named; users and rates have other latencies.
func TestNotes(t *testing.T) {
	t.Parallel()
	doubtful := cellOf("b", 1, func(n int, l *result.Load) {
		l.Latency = result.ResponseTime
		if n == 2 {
			l.Outcome, l.Message = result.Interrupted, "interrupted after 3s"
		}
	})
	table := Table([]Cell{cellOf("a", 0, nil), doubtful}, Question{})
	notes := strings.Join(table.Notes, "\n")
	for _, want := range []string{"b-2.json of b is inconclusive: interrupted after 3s", "they are different figures"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes lack %q:\n%s", want, notes)
		}
	}
	for _, c := range table.Comparisons {
		if c.Primary && c.Figure != compare.ErrorRate.Name {
			t.Errorf("%s of users and of a rate has a verdict", c.Figure)
		}
	}
}

// The record of a run from which the load did not recover counts as one that takes longer than all others.
func TestRecordsWithoutRecovery(t *testing.T) {
	t.Parallel()
	cell := func(name string, slot int, recovers bool) Cell {
		c := Cell{Name: name}
		for turn := range 6 {
			m := result.Mark{
				Name:   "kill",
				At:     result.Seconds(10 * time.Second),
				Outage: &result.BoundedSeconds{Value: result.Seconds(2 * time.Second)},
			}
			if recovers || turn >= 3 {
				m.Took = &result.BoundedSeconds{Value: result.Seconds(3*time.Second + time.Duration(turn)*time.Millisecond)}
			}
			c.Runs = append(c.Runs, OfCourse(&result.Course{
				Start:  start.Add(time.Duration(10*turn+slot) * time.Minute),
				Faults: []result.Mark{m},
				Rows:   []result.Row{{Until: result.Seconds(time.Minute), Operation: result.Operation{Requests: 9}}},
			}))
		}
		return c
	}
	table := Table([]Cell{cell("all", 0, true), cell("half", 1, false)}, Question{})
	got := row(t, table, compare.RecoveryTime)
	if !got.Primary || got.Repeats != 6 || got.Verdict == "Same" || got.AtMost != nil {
		t.Errorf("%+v", got)
	}
	if both := row(t, Table([]Cell{cell("a", 0, false), cell("b", 1, false)}, Question{}),
		compare.RecoveryTime); !both.Primary || both.Verdict != "Inconclusive" {
		t.Errorf("half of both: %+v", both)
	}
}

func TestOpenLoopOfObjects(t *testing.T) {
	t.Parallel()
	stages := &v1alpha1.RedisLoadTest{}
	stages.Spec.Load.Stages = []v1alpha1.LoadStage{
		{Duration: metav1.Duration{Duration: time.Minute}, Rate: new(int32(100))},
	}
	users := &v1alpha1.RedisLoadTest{}
	users.Spec.Load.Users = new(int32(100))
	if !OfObjects(stages, nil, result.Run{}).OpenLoop || OfObjects(users, nil, result.Run{}).OpenLoop {
		t.Error("stages of rates are an open loop, and users are none")
	}
}

// A setting of a load has no figures; a run whose setting was lost is not one of it.
func TestSettingOfObjects(t *testing.T) {
	t.Parallel()
	test := &v1alpha1.RedisLoadTest{}
	test.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionComplete, Status: metav1.ConditionTrue}}
	setting := v1alpha1.RedisFault{
		ObjectMeta: metav1.ObjectMeta{Name: "always"},
		Spec:       v1alpha1.RedisFaultSpec{Setting: true},
	}
	for verdict, want := range map[v1alpha1.Verdict]bool{
		v1alpha1.VerdictPass:         true,
		v1alpha1.VerdictInconclusive: false,
		"":                           false,
	} {
		setting.Status.Verdict = verdict
		run := OfObjects(test, []v1alpha1.RedisFault{setting}, result.Run{})
		if (run.Inconclusive == "") != want ||
			!want && !strings.Contains(run.Inconclusive, "RedisFault always, its setting,") || len(run.Values) != 0 {
			t.Errorf("%q: inconclusive %q, values %v", verdict, run.Inconclusive, run.Values)
		}
	}
}

// A load without a success is as slow as it was long, however its length was given; its outage is known without a
// fault, too.
func TestLoadWithoutASuccess(t *testing.T) {
	t.Parallel()
	start := metav1.NewMicroTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	end := metav1.NewMicroTime(start.Add(50 * time.Second))
	stage := v1alpha1.LoadStage{Duration: metav1.Duration{Duration: time.Minute}, Rate: new(int32(100))}
	for name, test := range map[string]struct {
		load v1alpha1.LoadShape
		want float64
	}{
		"a duration":           {v1alpha1.LoadShape{Duration: &metav1.Duration{Duration: 40 * time.Second}}, 50},
		"stages":               {v1alpha1.LoadShape{Stages: []v1alpha1.LoadStage{stage, stage}}, 120},
		"a number of requests": {v1alpha1.LoadShape{Requests: new(int64(100))}, 50},
	} {
		of := &v1alpha1.RedisLoadTest{Spec: v1alpha1.RedisLoadTestSpec{Load: test.load}}
		of.Status.StartTime, of.Status.CompletionTime = &start, &end
		of.Status.Summary = &v1alpha1.LoadSummary{
			Requests: 9,
			Errors:   9,
			Outage:   &v1alpha1.Outage{BoundedDuration: v1alpha1.BoundedDuration{Value: v1alpha1.DurationOf(49 * time.Second)}},
		}
		run := OfObjects(of, nil, result.Run{})
		if got := run.Values["latencyP99"]; got != (Value{Value: test.want, Censored: true}) ||
			run.Values["outage"] != (Value{Value: 49}) {
			t.Errorf("%s: %+v", name, run.Values)
		}
	}
	whole := &v1alpha1.RedisLoadTest{
		Status: v1alpha1.RedisLoadTestStatus{
			Summary: &v1alpha1.LoadSummary{Requests: 9, Latency: &v1alpha1.LatencySummary{}},
		},
	}
	if outage, ok := OfObjects(whole, nil, result.Run{}).Values["outage"]; !ok || outage != (Value{}) {
		t.Errorf("without an outage it is %+v, %t", outage, ok)
	}
}

// The figures of a run are those of the results that were kept beside its record, not of the statuses; throughput,
// errors and latencies are of the whole measured time, with the faults, as the columns show them.
func TestRunOfWhatWasKept(t *testing.T) {
	t.Parallel()
	test := &v1alpha1.RedisLoadTest{
		Status: v1alpha1.RedisLoadTestStatus{Summary: &v1alpha1.LoadSummary{Requests: 9, Throughput: "10", ErrorRate: "0.5"}},
	}
	kill := v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: "kill", UID: "u"}, Status: v1alpha1.RedisFaultStatus{
		InjectedAt: new(metav1.NowMicro()),
		Verdict:    v1alpha1.VerdictPass,
		Impact: &v1alpha1.Impact{
			Outage: &v1alpha1.Outage{BoundedDuration: v1alpha1.BoundedDuration{Value: v1alpha1.DurationOf(1 * time.Second)}},
		},
	}}
	load := &result.Load{
		Outcome:       result.Finished,
		Total:         result.Operation{Requests: 9, Throughput: 20, ErrorRate: 0.25},
		OutsideFaults: &result.Operation{Requests: 5, Throughput: 30},
	}
	load.Verification = &result.Verification{Lost: new(uint64(7))}
	fault := result.NewFault(&impact.Impact{
		Outage:       impact.Outage{Bounded: durations.Exactly(2 * time.Second), Of: impact.Load},
		Recovered:    true,
		RecoveryTime: durations.Exactly(3 * time.Second),
	}, result.FaultInput{Name: "kill", UID: "u"})
	fault.Verdict = string(v1alpha1.VerdictPass)
	kept := result.Run{Load: load, Faults: []result.Fault{*fault}}
	want := map[string]float64{"throughput": 20, "errorRate": 0.25, "outage": 2, "recoveryTime": 3, "lostWrites": 7}
	for name, run := range map[string]Run{
		"of objects":          OfObjects(test, []v1alpha1.RedisFault{kill}, kept),
		"without the fault's": OfObjects(test, nil, kept),
		"of a load":           OfLoad(load, *fault),
	} {
		for figure, value := range want {
			if got := run.Values[figure]; got.Value != value {
				t.Errorf("%s: %s is %v, want %v", name, figure, got, value)
			}
		}
	}
	if run := OfObjects(test, []v1alpha1.RedisFault{kill}, result.Run{}); run.Values["throughput"].Value != 10 ||
		run.Values["outage"].Value != 1 {
		t.Errorf("by the statuses: %+v", run.Values)
	}
}

// Why a run is not compared is said with it.
func TestInconclusiveOfObjects(t *testing.T) {
	t.Parallel()
	of := &v1alpha1.RedisLoadTest{
		Status: v1alpha1.RedisLoadTestStatus{Verdict: v1alpha1.VerdictInconclusive, Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionComplete, Status: metav1.ConditionTrue},
			{Type: v1alpha1.ConditionObjectivesMet, Status: metav1.ConditionUnknown, Message: "the load was behind"},
		}},
	}
	if why := OfObjects(of, nil, result.Run{}).Inconclusive; why != "its verdict is Inconclusive: the load was behind" {
		t.Errorf("%q", why)
	}
	fault := v1alpha1.RedisFault{
		ObjectMeta: metav1.ObjectMeta{Name: "kill"},
		Status:     v1alpha1.RedisFaultStatus{Verdict: v1alpha1.VerdictInconclusive},
	}
	if why := OfObjects(of, []v1alpha1.RedisFault{fault},
		result.Run{}).Inconclusive; why != "RedisFault kill is inconclusive" {
		t.Errorf("%q", why)
	}
	fault.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ConditionObjectivesMet, Status: metav1.ConditionUnknown, Message: "it never recovered"},
	}
	if why := OfObjects(of, []v1alpha1.RedisFault{fault},
		result.Run{}).Inconclusive; why != "RedisFault kill is inconclusive: it never recovered" {
		t.Errorf("%q", why)
	}
	of.Status.Verdict = v1alpha1.VerdictFail // it lost too much, which is certain; the rest is not
	of.Status.Doubts = []v1alpha1.Doubt{{Reason: "Redirected", Message: "3 requests"}}
	if why := OfObjects(of, nil, result.Run{}).Inconclusive; why != "Redirected: 3 requests" {
		t.Errorf("%q", why)
	}
	kept := result.NewFault(&impact.Impact{
		Doubts: []impact.Doubt{
			{Reason: impact.GeneratorStalled, Message: "load pod 0 did not run"},
			{Reason: impact.BaselineUnsteady, Message: "it varied"},
		},
	}, result.FaultInput{})
	kept.Name, kept.UID, kept.Verdict = "kill", "u-kill", string(v1alpha1.VerdictFail)
	if why := OfObjects(of, nil, result.Run{Faults: []result.Fault{*kept}}).Inconclusive; why !=
		"RedisFault kill: BaselineUnsteady: it varied" {
		t.Errorf("%q", why)
	}
	kept.Doubts = kept.Doubts[:1] // stalls are in the bounds of durations, and may have lost requests
	of.Status.Doubts = nil
	run := OfObjects(of, nil, result.Run{Faults: []result.Fault{*kept}})
	_, outage := run.Values[compare.Outage.Name]
	_, lost := run.Values[compare.LostRequests.Name]
	if run.Inconclusive != "" || !outage || lost {
		t.Errorf("of a stalled load: %q, %v", run.Inconclusive, run.Values)
	}
}
