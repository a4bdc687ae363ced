package live

import (
	"encoding/base64"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/kube"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/testing/golden"
)

// start is when the load of the tests began.
var start = time.Date(2026, 11, 25, 13, 0, 0, 0, time.UTC)

// conditions are those of an object in a state.
func conditions(reason, message string, complete metav1.ConditionStatus) []metav1.Condition {
	return []metav1.Condition{{Type: v1alpha1.ConditionComplete, Status: complete, Reason: reason, Message: message}}
}

func loadTest() *v1alpha1.RedisLoadTest {
	return &v1alpha1.RedisLoadTest{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:         "shop",
			Name:              "checkout-cache",
			UID:               "load",
			CreationTimestamp: metav1.NewTime(start.Add(-10 * time.Second)),
		},
		Spec: v1alpha1.RedisLoadTestSpec{Load: v1alpha1.LoadShape{
			WarmUp: &metav1.Duration{Duration: 5 * time.Second}, Duration: &metav1.Duration{Duration: 75 * time.Second},
		}},
		Status: v1alpha1.RedisLoadTestStatus{
			StartTime: new(metav1.NewMicroTime(start)), Progress: 40, LoadPods: &v1alpha1.LoadPodsStatus{Desired: 2, Ready: 2},
			Conditions: conditions(v1alpha1.ReasonRunning, "", metav1.ConditionFalse),
			Display:    &v1alpha1.LoadTestDisplay{TPS: "1950.2", P99: "2.2ms", Errors: "3.1%", Progress: "40%"},
			Summary:    &v1alpha1.LoadSummary{Requests: 52000, Errors: 1612, Throughput: "2000"},
		},
	}
}

func fault() *v1alpha1.RedisFault {
	at := func(after time.Duration, event, object, message string) v1alpha1.TimelineEvent {
		return v1alpha1.TimelineEvent{
			At:      metav1.NewMicroTime(start.Add(20*time.Second + after)),
			Offset:  v1alpha1.DurationOf(after),
			Event:   event,
			Object:  object,
			Message: message,
		}
	}
	return &v1alpha1.RedisFault{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:         "shop",
			Name:              "kill-primary",
			UID:               "fault",
			CreationTimestamp: metav1.NewTime(start.Add(-9 * time.Second)),
		},
		Spec: v1alpha1.RedisFaultSpec{
			LoadTestRef: &v1alpha1.LoadTestReference{Name: "checkout-cache"},
			Action:      v1alpha1.Action{Type: v1alpha1.FaultPodKill},
		},
		Status: v1alpha1.RedisFaultStatus{
			Conditions: conditions(v1alpha1.ReasonObserving, "no success since 0.03s; waiting for a sustained recovery",
				metav1.ConditionFalse),
			LoadTest:       "checkout-cache",
			InjectedAt:     new(metav1.NewMicroTime(start.Add(20 * time.Second))),
			RevertedAt:     new(metav1.NewMicroTime(start.Add(20 * time.Second))),
			Effect:         v1alpha1.EffectConfirmed,
			EffectEvidence: "pod redis-0 was replaced",
			Display:        &v1alpha1.FaultDisplay{Target: "redis-0", Dip: "97.7%", Outage: "1.08s"},
			Timeline: []v1alpha1.TimelineEvent{
				at(0, "Injected", "redis-0", "DELETE pod redis-0 with grace period 0s"),
				at(30*time.Millisecond, "PodDeleted", "redis-0", ""),
				at(31*time.Millisecond, "FirstError", "", "connection reset by peer"),
				at(210*time.Millisecond, "ReplacementCreated", "redis-0", ""),
				at(300*time.Millisecond, "Scheduled", "redis-0", "node-2"),
				at(900*time.Millisecond, "ContainerStarted", "redis-0", ""),
			},
		},
	}
}

func change(t *testing.T, kind string, object any) kube.Change {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	return kube.Change{Object: u}
}

// recordOf is the change of a record in which each second has a number of successes of a latency.
func recordOf(t *testing.T, perSecond []int, latency time.Duration) kube.Change {
	t.Helper()
	series := merged.New("load", start, time.Second, []string{"get"}, 1)
	for i, n := range perSecond {
		iv := &record.Interval{
			Index: int64(i), Pods: 1, Ops: make([]record.Op, 1), FirstOK: -1, LastOK: -1, FirstError: -1, LastError: -1,
		}
		iv.Ops[0].OK = uint64(n)
		var h histogram.Histogram
		for range n {
			h.Record(int64(latency))
		}
		if n > 0 {
			iv.Ops[0].Latency = h.AppendTo(nil)
		}
		if err := series.Add(0, iv); err != nil {
			t.Fatal(err)
		}
	}
	data, err := series.Encode(0)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"binaryData": map[string]any{"series": base64.StdEncoding.EncodeToString(data)},
		"metadata": map[string]any{
			"name":   "checkout-cache-results",
			"labels": map[string]any{v1alpha1.LabelLoadTest: "checkout-cache"},
		},
	}}
	return kube.Change{Object: u}
}

// dip is a load of 30 s with a second without a success at 20 s.
func dip() []int {
	var all []int
	for i := range 30 {
		switch {
		case i == 20:
			all = append(all, 0)
		case i < 2:
			all = append(all, 100*(i+1))
		default:
			all = append(all, 200)
		}
	}
	return all
}

func stateOf(t *testing.T, at time.Duration, of []types.UID, changes ...kube.Change) *State {
	t.Helper()
	tracker := NewTracker()
	for _, c := range changes {
		if err := tracker.Apply(c); err != nil {
			t.Fatal(err)
		}
	}
	return tracker.State(start.Add(at), of)
}

func TestPage(t *testing.T) {
	over := fault()
	over.Status.Conditions = conditions(v1alpha1.ReasonSucceeded, "outage 1.08s, recovered after 1.11s; Pass",
		metav1.ConditionTrue)
	over.Status.Verdict, over.Status.Display.Recovery = v1alpha1.VerdictPass, "1.11s"
	bounded := func(d time.Duration) *v1alpha1.BoundedDuration {
		return &v1alpha1.BoundedDuration{Value: v1alpha1.DurationOf(d)}
	}
	over.Status.Impact = &v1alpha1.Impact{Phases: []v1alpha1.Phase{
		{Name: "PodDeleted", Duration: bounded(30 * time.Millisecond)},
		{Name: "Scheduled", Duration: bounded(270 * time.Millisecond)},
		{Name: "ContainerStarted", Duration: bounded(600 * time.Millisecond)},
		{Name: "Recovered", Duration: bounded(210 * time.Millisecond)},
	}}
	experiment := &v1alpha1.RedisExperiment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "fsync", UID: "exp"},
		Status: v1alpha1.RedisExperimentStatus{
			Conditions:  conditions(v1alpha1.ReasonRunning, "", metav1.ConditionFalse),
			Progress:    &v1alpha1.ExperimentProgress{Runs: 24, Finished: 7, Inconclusive: 1},
			ExpectedEnd: new(metav1.NewTime(start.Add(40 * time.Minute))),
			Display:     &v1alpha1.ExperimentDisplay{Worse: "1/4"},
			Run: &v1alpha1.ExperimentRun{
				Number:   8,
				Round:    2,
				Cell:     "appendfsync=always,users=1000",
				LoadTest: "checkout-cache",
				Stage:    v1alpha1.RunLoad,
			},
			Warnings: []string{"4 repeats can tell differences of 20% and more"},
		},
	}
	starting := loadTest()
	starting.Status = v1alpha1.RedisLoadTestStatus{
		Conditions: conditions(v1alpha1.ReasonPreparing, "0 of 2 load pods are ready", metav1.ConditionFalse),
	}
	both := []types.UID{"load", "fault"}
	running := stateOf(t, 32*time.Second, both, change(t, "RedisLoadTest", loadTest()), change(t, "RedisFault", fault()),
		recordOf(t, dip(), 2*time.Millisecond))
	running.Hint = "Ctrl-C aborts, and reverts what was broken"
	troubled := stateOf(t, 32*time.Second, both, change(t, "RedisLoadTest", loadTest()), kube.Change{
		Trouble: fmt.Errorf("watch redisfaults: connection refused"),
	})
	for name, test := range map[string]struct {
		state         *State
		width, height int
	}{
		"page_running.txt": {running, 80, 24},
		"page_wide.txt":    {running, 140, 40},
		"page_small.txt":   {running, 40, 12},
		"page_over.txt": {
			stateOf(t, 90*time.Second, both, change(t, "RedisLoadTest", loadTest()), change(t, "RedisFault", over),
				recordOf(t, dip(), 2*time.Millisecond)), 80, 24,
		},
		"page_experiment.txt": {
			stateOf(t, 32*time.Second, []types.UID{"exp"}, change(t, "RedisExperiment", experiment),
				change(t, "RedisLoadTest", loadTest()), recordOf(t, dip(), time.Millisecond)),
			80,
			24,
		},
		"page_starting.txt": {stateOf(t, 0, both, change(t, "RedisLoadTest", starting)), 80, 24},
		"page_nothing.txt":  {stateOf(t, 0, both), 80, 24},
		"page_trouble.txt":  {troubled, 80, 24},
	} {
		t.Run(name, func(t *testing.T) {
			page := Page(test.state, test.width, test.height)
			lines := strings.Split(page, "\n")
			if len(lines) > test.height {
				t.Errorf("%d lines on a terminal of %d", len(lines), test.height)
			}
			for _, line := range lines {
				if w := ansi.StringWidth(line); w > test.width {
					t.Errorf("%d columns on a terminal of %d: %q", w, test.width, line)
				}
			}
			var text strings.Builder
			for _, line := range lines {
				text.WriteString(strings.TrimRight(ansi.Strip(line), " ") + "\n")
			}
			golden.Compare(t, filepath.Join("testdata", name), text.String())
		})
	}
}

// The lines are what is new, each once.
func TestPlain(t *testing.T) {
	tracker, plain := NewTracker(), NewPlain()
	var out strings.Builder
	show := func(at time.Duration, changes ...kube.Change) {
		for _, c := range changes {
			if err := tracker.Apply(c); err != nil {
				t.Fatal(err)
			}
		}
		for _, line := range plain.Next(tracker.State(start.Add(at), []types.UID{"load", "fault"})) {
			out.WriteString(line + "\n")
		}
	}
	test, f := loadTest(), fault()
	begun := test.DeepCopy()
	test.Status = v1alpha1.RedisLoadTestStatus{
		Conditions: conditions(v1alpha1.ReasonPreparing, "0 of 2 load pods are ready", metav1.ConditionFalse),
	}
	show(-10*time.Second, change(t, "RedisLoadTest", test))
	show(-9 * time.Second)
	show(0, change(t, "RedisLoadTest", begun))
	waiting := f.DeepCopy()
	waiting.Status = v1alpha1.RedisFaultStatus{
		Conditions: conditions(v1alpha1.ReasonWaitingForSteady, "steady for 3s of 10s", metav1.ConditionFalse),
	}
	show(5*time.Second, change(t, "RedisFault", waiting))
	waiting.Status.Conditions[0].Message = "steady for 5s of 10s" // no line
	show(7*time.Second, change(t, "RedisFault", waiting))
	show(10*time.Second, recordOf(t, dip()[:9], 2*time.Millisecond))
	show(21*time.Second, change(t, "RedisFault", f))
	show(22*time.Second, kube.Change{Trouble: fmt.Errorf("watch redisfaults: connection refused")})
	show(23*time.Second, kube.Change{Trouble: fmt.Errorf("watch redisfaults: connection refused")})
	f.Status.Conditions = conditions(v1alpha1.ReasonSucceeded, "outage 1.08s, recovered after 1.11s", metav1.ConditionTrue)
	f.Status.Verdict = v1alpha1.VerdictPass
	f.Status.Timeline = append(f.Status.Timeline, v1alpha1.TimelineEvent{
		Offset:  v1alpha1.DurationOf(1_110 * time.Millisecond),
		Event:   "Recovered",
		Message: "2000/s",
	})
	show(40*time.Second, change(t, "RedisFault", f))
	golden.Compare(t, filepath.Join("testdata", "plain.txt"), out.String())
}

// Between two records the statuses show the rate: of the successes since the status before.
func TestStatusesExtendTheRecord(t *testing.T) {
	test := loadTest()
	summary := func(seconds int, ok int64) *v1alpha1.LoadSummary {
		return &v1alpha1.LoadSummary{
			Requests:   ok + 10,
			Errors:     10,
			Throughput: v1alpha1.DecimalOf(float64(ok) / float64(seconds)),
		}
	}
	tracker := NewTracker()
	apply := func(c kube.Change) {
		if err := tracker.Apply(c); err != nil {
			t.Fatal(err)
		}
	}
	apply(recordOf(t, dip()[:20], time.Millisecond)) // until 20 s: 15 s of the measured time
	test.Status.Summary = summary(15, 3000)
	apply(change(t, "RedisLoadTest", test))
	test.Status.Summary = summary(17, 3100) // half a second of nothing, say: 50/s
	apply(change(t, "RedisLoadTest", test))
	course := tracker.State(start, nil).Courses["checkout-cache"]
	last := course.Rows[len(course.Rows)-1]
	if len(course.Rows) != 21 || last.Rate < 49.9 || last.Rate > 50.1 ||
		(last.Until-22*time.Second).Abs() > time.Millisecond || last.P99 != 0 {
		t.Errorf("%d rows, the last is %+v, want 21 and 50/s until 22 s", len(course.Rows), last)
	}
	if rate, p99 := course.Now(); rate != last.Rate || p99 == 0 {
		t.Errorf("now %v/s, p99 %s", rate, p99)
	}
	apply(recordOf(t, dip(), time.Millisecond)) // the record has caught up
	if rows := tracker.State(start, nil).Courses["checkout-cache"].Rows; len(rows) != 30 || rows[20].Rate != 0 ||
		rows[29].P99 == 0 {
		t.Errorf("%d rows after the record", len(rows))
	}
}

// A dip of a second shows in a column of an hour.
func TestChartShowsTheWorst(t *testing.T) {
	course := &Course{}
	for i := range 7200 {
		row := Row{At: time.Duration(i) * time.Second, Until: time.Duration(i+1) * time.Second, Rate: 1000}
		if i == 4000 {
			row.Rate = 0
		}
		course.Rows = append(course.Rows, row)
	}
	x := axisOf(2*time.Hour, 70)
	values := x.values(course, func(r Row) float64 { return r.Rate }, math.Min)
	lines, top := chart(values, 3)
	hole := x.column(4000 * time.Second)
	for i, line := range lines {
		for c, cell := range []rune(line) {
			if c < int(2*time.Hour/x.each) && (cell == ' ') != (c == hole) {
				t.Fatalf("line %d, column %d is %q, the dip is in column %d", i, c, cell, hole)
			}
		}
	}
	if top != 1000 {
		t.Errorf("the top is %v", top)
	}
	if lines, _ := chart([]float64{0.001, 100}, 2); lines[1] != "▁█" || lines[0] != " █" {
		t.Errorf("%q: the smallest value must show", lines)
	}
}

// What stands left of a chart keeps its unit, whatever its length.
func TestLabelsKeepTheirUnit(t *testing.T) {
	for value, want := range map[string]string{
		"623ms":       " p99 623ms ",
		"1.75s":       " p99 1.75s ",
		"12.3ms":      "p99 12.3ms ",
		"1m20s":       " p99 1m20s ",
		"1h12m":       " p99 1h12m ",
		"123456.78ms": "123456.78m ", // there is no such value
	} {
		if got := label(0, "p99", value); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := label(0, "", "161269.5/s"); got != "161269.5/s " {
		t.Errorf("%q", got)
	}
}

// The times below a chart are round, stand where they are, and do not run into each other.
func TestTimesBelowAChart(t *testing.T) {
	for _, end := range []time.Duration{10 * time.Second, 71 * time.Second, 8 * time.Minute, time.Hour, 26 * time.Hour} {
		for _, columns := range []int{29, 69, 130} {
			x := axisOf(end, columns)
			line := timeLine(x)
			times := strings.Fields(line)
			if len(line) != columns || times[0] != "0s" || columns > 60 && len(times) < 4 || len(times) > columns/7 {
				t.Errorf("%s in %d columns: %q", end, columns, line)
			}
			for _, text := range times[:len(times)-1] {
				at, err := time.ParseDuration(text)
				if err != nil || strings.Index(line, text) > x.column(at) {
					t.Errorf("%s in %d columns: %s is at %d: %q", end, columns, text, strings.Index(line, text), line)
				}
			}
		}
	}
}

// An operator that is silent is named, with what tells why; once.
func TestSilentOperator(t *testing.T) {
	const hint = "is the operator up? redquake doctor"
	test := loadTest()
	test.CreationTimestamp, test.Status = metav1.NewTime(start), v1alpha1.RedisLoadTestStatus{}
	plain := NewPlain()
	var lines []string
	for _, at := range []time.Duration{time.Second, 9 * time.Second, 11 * time.Second, 50 * time.Second} {
		s := stateOf(t, at, []types.UID{"load"}, change(t, "RedisLoadTest", test))
		if got, want := strings.Contains(ansi.Strip(Page(s, 80, 24)), hint), at > unseen; got != want {
			t.Errorf("after %s the page has the hint: %t", at, got)
		}
		lines = append(lines, plain.Next(s)...)
	}
	if len(lines) != 2 || !strings.Contains(lines[0], "has not seen it yet") || !strings.Contains(lines[1], hint) {
		t.Errorf("%q", lines)
	}
}
