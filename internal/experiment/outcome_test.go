package experiment

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
)

// planOf has two cells with six rounds, as recordOf.
func planOf(t *testing.T) (*v1alpha1.RedisExperiment, *Plan) {
	t.Helper()
	e := &v1alpha1.RedisExperiment{Spec: *specOf(t, "matrix: [{name: a, path: load.users, values: [1, 2]}]\nrepeat: 6")}
	e.Spec.Compare.Figures = []v1alpha1.ComparedFigure{"throughput"}
	e.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ConditionComplete, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSucceeded},
	}
	p, err := NewPlan(&e.Spec)
	if err != nil {
		t.Fatal(err)
	}
	return e, p
}

func TestCheck(t *testing.T) {
	t.Parallel()
	_, p := planOf(t)
	for name, test := range map[string]struct {
		edit func(*Record)
		want string
	}{
		"its own":          {func(*Record) {}, ""},
		"not all runs":     {func(r *Record) { r.Runs = r.Runs[:3] }, ""},
		"another cell":     {func(r *Record) { r.Cells[1] = "a=3" }, `a cell "a=3" that the spec does not have`},
		"fewer cells":      {func(r *Record) { r.Cells = r.Cells[:1] }, "has 1 cells, and the spec 2"},
		"another order":    {func(r *Record) { r.Cells[0], r.Cells[1] = r.Cells[1], r.Cells[0] }, "in another order"},
		"round 0":          {func(r *Record) { r.Runs[2].Round = 0 }, "run 3 of the record is of round 0 of 6"},
		"a round too many": {func(r *Record) { r.Runs[2].Round = 7 }, "run 3 of the record is of round 7 of 6"},
		"twice in a round": {func(r *Record) { r.Runs[2].Round = 1 }, "more runs of a=1 in round 1"},
	} {
		r := recordOf(nil)
		test.edit(r)
		if err := p.Check(r); test.want == "" && err != nil ||
			test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

func TestOutcome(t *testing.T) {
	t.Parallel()
	e, p := planOf(t)
	worse := recordOf(func(n int, r *RecordedRun) {
		r.Values = map[string]Value{"throughput": {Value: float64((100 + n) * (2 - r.Cell))}}
	})
	for _, test := range []struct {
		require v1alpha1.ComparisonRequirement
		want    v1alpha1.Verdict
	}{
		{"", v1alpha1.VerdictPass},
		{v1alpha1.RequireNone, v1alpha1.VerdictPass},
		{v1alpha1.RequireNotWorse, v1alpha1.VerdictFail},
	} {
		of := p.Outcome(e, worse, test.require)
		if of.Experiment.Verdict != string(test.want) || of.Experiment.Finished != 12 || of.Baseline != "a=1" ||
			of.Comparisons[0].Verdict != string(v1alpha1.ComparisonWorse) {
			t.Errorf("%q: %+v, %+v", test.require, of.Experiment, of.Comparisons[0])
		}
	}
	worse.Runs = worse.Runs[:11]
	if of := p.Outcome(e, worse, v1alpha1.RequireNotWorse); of.Experiment.Verdict != "" || of.Experiment.Message == "" ||
		of.Comparisons[0].Verdict != "" || of.Comparisons[0].Change == nil {
		t.Errorf("without the last run: %+v, %+v", of.Experiment, of.Comparisons[0])
	}
	e.Status.Verdict, e.Status.Conditions = v1alpha1.VerdictFail, []metav1.Condition{
		{Type: v1alpha1.ConditionComplete, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonRunFailed},
	}
	if of := p.Outcome(e, worse, ""); of.Experiment.Verdict != string(v1alpha1.VerdictFail) ||
		of.Comparisons[0].Verdict != "" {
		t.Errorf("stopped by a missed objective: %+v, %+v", of.Experiment, of.Comparisons[0])
	}
}

// An experiment of one cell, which is compared with an earlier run only, has no comparison.
func TestOutcomeOfOneCell(t *testing.T) {
	t.Parallel()
	e, _ := planOf(t)
	e.Spec.Matrix[0].Values, e.Spec.CompareTo = e.Spec.Matrix[0].Values[:1], &v1alpha1.EarlierRun{Run: "before"}
	p, err := NewPlan(&e.Spec)
	if err != nil {
		t.Fatal(err)
	}
	r := recordOf(nil)
	r.Cells = r.Cells[:1]
	r.Runs = nil
	if of := p.Outcome(e, r, ""); len(of.Comparisons) != 0 || of.Comparisons == nil || of.Baseline != "a=1" {
		t.Errorf("%+v", of)
	}
}
