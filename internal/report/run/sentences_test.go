package run

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/judgement"
	"github.com/redquake/redquake/internal/report/subject"
)

// essay is the message of a doubt with all its numbers.
const essay = "the load generator was the bottleneck: requests were sent late: half of them by 132.8ms and more " +
	"after their arrival, 10% of the p99 of 1.29s, while 48% of the " +
	"connections were in use; load pod 1 did not run for 34.15s of the measured time (341 times, at most 1.2s), and its " +
	"node had no CPU for it in 12% of that"

var severalDoubts = []v1alpha1.Doubt{
	{Reason: "LoadGeneratorSaturated", Message: essay},
	{Reason: impact.RecordIncomplete, Message: essay},
	{Reason: "StartSkew", Message: essay},
}

// inconclusive is a run whose load and whose fault are in doubt for several reasons, though every objective is met.
func inconclusive(t *testing.T) subject.Input {
	t.Helper()
	in := saved(t, "pass")
	doubted := []metav1.Condition{
		condition("Complete", metav1.ConditionTrue, essay),
		condition("ObjectivesMet", metav1.ConditionUnknown, essay+"; "+essay),
	}
	in.Test.Status.Verdict, in.Test.Status.Doubts, in.Test.Status.Conditions = v1alpha1.VerdictInconclusive, severalDoubts,
		doubted
	f := &in.Faults[0].Status
	f.Verdict, f.Impact.Doubts, f.Conditions = v1alpha1.VerdictInconclusive, severalDoubts, doubted
	return in
}

// words counts the words of the longest sentence; a unit is a part of its number.
func longestSentence(text string) (most int) {
	for sentence := range strings.SplitSeq(strings.ReplaceAll(text, ". ", ".\n"), "\n") {
		most = max(most, len(strings.FieldsFunc(sentence, func(r rune) bool { return r == ' ' })))
	}
	return most
}

// The head of a report is a sentence that is read at a glance. A doubt has a phrase there; its numbers are under
// Doubts, once.
func TestHeadlinesAreShort(t *testing.T) {
	failed := saved(t, "pass")
	failed.Test.Status.Verdict, failed.Test.Status.Conditions = "", []metav1.Condition{
		condition("Failed", metav1.ConditionTrue, essay),
	}
	failed.Faults[0].Status = v1alpha1.RedisFaultStatus{
		LoadTest:   failed.Test.Name,
		Conditions: []metav1.Condition{condition("Failed", metav1.ConditionTrue, essay)},
	}
	for name, in := range map[string]subject.Input{
		"pass": saved(t, "pass"), "fail": saved(t, "fail"), "not recovered": saved(t, "not-recovered"),
		"several": saved(t, "several"), "demo": saved(t, "demo"), "search": saved(t, "search"),
		"inconclusive": inconclusive(t), "failed": failed,
	} {
		for _, d := range documents(t, in) {
			if n := longestSentence(d.Finding.String()); n > judgement.MostWords {
				t.Errorf("%s, %s: %d words: %s", name, d.Kind, n, d.Finding)
			}
			if strings.HasPrefix(d.Finding.String(), "Not conclusive") && !strings.HasSuffix(d.Finding.String(), ".") {
				t.Errorf("%s: %q", name, d.Finding)
			}
		}
	}
	for _, d := range documents(t, inconclusive(t)) {
		if want := "Not conclusive: the load generator was too slow (and 2 other reasons)."; d.Finding.String() != want {
			t.Errorf("%s: %q, want %q", d.Kind, d.Finding, want)
		}
		if text := d.Reason + d.Finding.String(); strings.Contains(text, "34.15s") ||
			!strings.Contains(d.Reason, "3 reasons") {
			t.Errorf("%s: the numbers of a doubt are above the figures: %q", d.Kind, text)
		}
		if html := written(t, "html", d); !strings.Contains(html, "34.15s") {
			t.Errorf("%s: the numbers are nowhere", d.Kind)
		}
	}
}

// documents are the reports of a load and of its faults.
func documents(t *testing.T, in subject.Input) []*report.Document {
	t.Helper()
	list := []*report.Document{LoadTest(in)}
	for i := range in.Faults {
		d, err := Fault(in, in.Faults[i].Name)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, d)
	}
	return list
}

// No part of a report says that an objective is met where another says that it is not judged.
func TestDoubtedObjectivesAreNotMet(t *testing.T) {
	for _, d := range documents(t, inconclusive(t)) {
		for _, o := range d.Objectives {
			if o.Judged != report.NotJudged {
				t.Errorf("%s: %+v", d.Kind, o)
			}
		}
		for _, form := range []string{"md", "html"} {
			if text := written(t, form, d); strings.Contains(text, "are met") || strings.Contains(text, "✓ met") {
				t.Errorf("%s: %s says that objectives are met", d.Kind, form)
			}
		}
	}
}

// A fault that lost too much is a Fail whatever is in doubt of the rest, and the rest is not judged: neither in its own
// report nor in that of its load.
func TestTooMuchIsLostBesideADoubt(t *testing.T) {
	in := saved(t, "pass")
	status := &in.Faults[0].Status
	status.Verdict = v1alpha1.VerdictFail
	status.Conditions = []metav1.Condition{
		condition("Complete", metav1.ConditionTrue, ""),
		condition("ObjectivesMet", metav1.ConditionFalse, "maxLostWrites is 3, limit 0"),
	}
	status.Impact.Doubts = []v1alpha1.Doubt{{Reason: impact.BaselineUnsteady, Message: essay}}
	status.Objectives = append(status.Objectives, v1alpha1.ObjectiveResult{
		Name: "maxLostWrites", Unit: v1alpha1.UnitCount, Limit: "0", Actual: "3", Met: new(false), Message: "maxLostWrites is 3, limit 0",
	})
	for _, d := range documents(t, in) {
		if d.Kind == report.Fault && d.Reason != "Whatever the doubt below: maxLostWrites is 3, limit 0." {
			t.Errorf("it says %q", d.Reason)
		}
		judged := map[report.Judged]int{}
		for _, o := range d.Objectives {
			if o.Name == "maxLostWrites" != (o.Judged == report.Missed) && (d.Kind == report.Fault || o.Of != "") {
				t.Errorf("%s: %+v", d.Kind, o)
			}
			judged[o.Judged]++
		}
		if judged[report.Missed] != 1 || judged[report.NotJudged] == 0 {
			t.Errorf("%s: %v", d.Kind, judged)
		}
	}
}

// A figure that is off by more than a third of itself is a range wherever it stands.
func TestUncertainFiguresAreRanges(t *testing.T) {
	in := saved(t, "pass")
	in.Faults[0].Status.Impact.RecoveryTime = &v1alpha1.BoundedDuration{
		Value:   v1alpha1.DurationOf(7_580 * time.Millisecond),
		AtLeast: v1alpha1.DurationOf(1_280 * time.Millisecond),
		AtMost:  v1alpha1.DurationOf(7_580 * time.Millisecond),
	}
	d, err := Fault(in, in.Faults[0].Name)
	if err != nil {
		t.Fatal(err)
	}
	const want = "1.28\u00a0s–7.58\u00a0s"
	if text := d.Finding.String(); !strings.Contains(text, "Within "+want+" the throughput was back") {
		t.Errorf("the head is %q", text)
	}
	for _, f := range d.Figures {
		if f.Name == "recoveryTime" && (f.Text() != want || f.Beside() != "") {
			t.Errorf("the figure is %q %q", f.Text(), f.Beside())
		}
	}
}

// "No reason for doubt was found" is not said where one was found and changes nothing.
func TestPassBesideADoubt(t *testing.T) {
	in := saved(t, "pass")
	in.Faults[0].Status.Impact.Doubts = []v1alpha1.Doubt{{Reason: impact.GeneratorStalled, Message: essay}}
	d, err := Fault(in, in.Faults[0].Name)
	if err != nil || strings.Contains(d.Reason, "No reason for doubt") ||
		!strings.Contains(d.Reason, "whatever the doubt below") {
		t.Errorf("%v: %q", err, d.Reason)
	}
}

// Nor is it said above "The load generator limited it, not Redis".
func TestPassOfALimitedLoad(t *testing.T) {
	in := saved(t, "pass")
	in.Test.Status.Bottleneck = &v1alpha1.Bottleneck{
		Component: "LoadGenerator",
		Evidence:  "load pod 0 did not run for 5.71s",
	}
	d, err := Fault(in, in.Faults[0].Name)
	if err != nil || strings.Contains(d.Reason, "No reason for doubt") ||
		!strings.Contains(d.Reason, "The load generator limited the load, which the bounds of the figures contain") {
		t.Errorf("%v: %q", err, d.Reason)
	}
}

// A load that runs has no outage of 0 s, but that of its record, or of its faults, or none that is known.
func TestOutageOfARunningLoad(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*subject.Input)
		want   string
	}{
		"by the record": {func(in *subject.Input) { in.Faults = nil }, "2\u00a0s"},
		"by the fault":  {func(in *subject.Input) { in.Series = nil }, "2\u00a0s"},
		"not known":     {func(in *subject.Input) { in.Series, in.Faults = nil, nil }, "not measured"},
	} {
		in := running(t)
		tc.change(&in)
		d := LoadTest(in)
		for _, f := range d.Figures {
			if f.Name == "outage" && f.Of == "" && (f.Text() != tc.want || strings.Contains(f.Note, "No stretch")) {
				t.Errorf("%s: %q, %s; want %s", name, f.Text(), f.Note, tc.want)
			}
		}
	}
	first := running(t)
	first.Series, first.Faults, first.Test.Status.Summary, first.Test.Status.Display = nil, nil, &v1alpha1.LoadSummary{
		ErrorRate:  "0",
		Throughput: "0",
	}, nil
	for _, form := range []string{"md", "html", "json"} {
		if text := written(t, form, LoadTest(first)); strings.Contains(text, "0\u00a0%") ||
			strings.Contains(text, "0/s") && !strings.Contains(text, "400/s") || strings.Contains(text, "without an error") {
			t.Errorf("%s has a 0 of a load that has measured nothing:\n%.3000s", form, text)
		}
	}
}

// running is a load that runs, with a fault that was injected: its status has what the operator computes meanwhile.
func running(t *testing.T) subject.Input {
	t.Helper()
	in := saved(t, "pass")
	in.Test.Status.Verdict, in.Test.Status.Objectives, in.Test.Status.Bottleneck, in.Test.Status.Verification = "", nil,
		nil, nil
	in.Test.Status.Summary.Outage, in.Test.Status.CompletionTime = nil, nil
	in.Test.Status.Conditions = []metav1.Condition{condition("Complete", metav1.ConditionFalse, "running")}
	f := &in.Faults[0].Status
	f.SettledTime = nil
	f.Verdict = ""
	f.Objectives = nil
	f.Conditions = []metav1.Condition{condition("Complete", metav1.ConditionFalse, "observing")}
	f.Impact.Recovered, f.Impact.RecoveryTime, f.Impact.Phases = false, nil, nil
	return in
}
